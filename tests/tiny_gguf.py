"""A Qwen2 model of a few thousand random weights as a GGUF file: it says nothing, in the way the large ones do."""

from pathlib import Path

import numpy as np

LAYERS, WIDTH, HEADS, KEY_HEADS, FEED = 2, 64, 4, 2, 128
CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MERGES = ("Ġ t", "h e", "Ġt he", "s t", "e r")
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_tiny_model(path: Path, *, architecture: str = "qwen2", cut: str = "qwen2", context: int = 512) -> Path:
    """The file, the same bytes every time."""
    from gguf import GGUFWriter, TokenType
    from tokenizers.pre_tokenizers import ByteLevel

    joined = [merge.replace(" ", "") for merge in MERGES]
    words = [*sorted(ByteLevel.alphabet()), *joined, *CONTROL]
    writer = GGUFWriter(str(path), architecture)
    writer.add_context_length(context)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_rope_freq_base(10_000.0)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(cut)
    writer.add_token_list(words)
    writer.add_token_types([TokenType.CONTROL if word in CONTROL else TokenType.NORMAL for word in words])
    writer.add_token_merges(list(MERGES))
    writer.add_eos_token_id(words.index("<|im_end|>"))
    writer.add_bos_token_id(words.index("<|endoftext|>"))
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)
    tensors = _tensors(len(words))
    # It writes letters, digits and signs: two runtimes need not agree on how half a character is shown.
    tensors["output.weight"][[not (word.isascii() and word.isprintable()) or word in CONTROL for word in words]] = 0
    for name, tensor in tensors.items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _tensors(words: int) -> dict[str, "np.ndarray[tuple[int, ...], np.dtype[np.float32]]"]:
    draw = np.random.default_rng(7)

    def weights(*shape: int) -> "np.ndarray[tuple[int, ...], np.dtype[np.float32]]":
        return draw.normal(0, 1.5 / shape[-1] ** 0.5, shape).astype(np.float32)

    keys = WIDTH // HEADS * KEY_HEADS
    tensors = {"token_embd.weight": weights(words, WIDTH), "output.weight": weights(words, WIDTH)}
    tensors["output_norm.weight"] = np.ones(WIDTH, np.float32)
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        for part, size in (("q", WIDTH), ("k", keys), ("v", keys)):
            tensors[f"{block}attn_{part}.weight"] = weights(size, WIDTH)
            tensors[f"{block}attn_{part}.bias"] = weights(1, size)[0]
        tensors[f"{block}attn_output.weight"] = weights(WIDTH, WIDTH)
        tensors[f"{block}ffn_gate.weight"] = weights(FEED, WIDTH)
        tensors[f"{block}ffn_up.weight"] = weights(FEED, WIDTH)
        tensors[f"{block}ffn_down.weight"] = weights(WIDTH, FEED)
        for norm in ("attn_norm", "ffn_norm"):
            tensors[f"{block}{norm}.weight"] = 1 + weights(1, WIDTH)[0]
    return tensors
