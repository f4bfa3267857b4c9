"""What a GGUF file says of text: its chat template and its byte-pair vocabulary."""

from collections.abc import Sequence
from typing import Any

from sqlcrystal.errors import ConfigError
from sqlcrystal.types import Message

PIECES = {
    "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}
"""How text is cut before byte pairs are joined, by the name that the file gives."""
ENDS = ("<|im_end|>", "<|endoftext|>")
"""What ends a reply besides the token that the file names, as llama.cpp has it."""
CONTROL = 3
"""The type of tokens that are never part of a text, such as the end of a message."""


class GgufText:
    """Messages to tokens and tokens to text, as the file's own template and vocabulary have it."""

    def __init__(self, metadata: Any) -> None:
        """Read template and vocabulary from the fields of a GGUF file."""
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        cut = str(metadata["tokenizer.ggml.pre"].contents())
        if cut not in PIECES:
            raise ConfigError.unknown("model: the tokenizer of its GGUF file", cut, PIECES)
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        self._template = environment.from_string(metadata["tokenizer.chat_template"].contents())
        self._tokenizer = _tokenizer(metadata, PIECES[cut])
        named = (self._tokenizer.token_to_id(word) for word in ENDS)
        last = int(metadata["tokenizer.ggml.eos_token_id"].contents())
        self.ends = frozenset({last, *(token for token in named if token is not None)})
        """The tokens that end a reply."""

    def tokens(self, messages: Sequence[Message]) -> list[int]:
        """The prompt, up to where the reply begins."""
        prompt = self._template.render(
            messages=[{"role": message.role, "content": message.content} for message in messages],
            add_generation_prompt=True,
        )
        tokens: list[int] = self._tokenizer.encode(prompt, add_special_tokens=False).ids
        return tokens

    def text(self, tokens: Sequence[int]) -> str:
        """What a reply says."""
        said: str = self._tokenizer.decode(list(tokens), skip_special_tokens=True)
        return said


def _tokenizer(metadata: Any, pieces: str) -> Any:
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

    words: list[str] = metadata["tokenizer.ggml.tokens"].contents()
    kinds: list[int] = metadata["tokenizer.ggml.token_type"].contents()
    merges: list[str] = metadata["tokenizer.ggml.merges"].contents()
    pairs = [(first, second) for first, _, second in (merge.partition(" ") for merge in merges)]
    tokenizer = Tokenizer(models.BPE(vocab={word: index for index, word in enumerate(words)}, merges=pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pieces), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    control = [word for word, kind in zip(words, kinds, strict=True) if kind == CONTROL]
    tokenizer.add_special_tokens([AddedToken(word, special=True, normalized=False) for word in control])
    return tokenizer
