"""Qwen2's decoder over the weights of a GGUF file: one prompt is read at a time, many replies are written together.

Weights are unpacked to bfloat16, which processors of the last years multiply several times as fast as llama.cpp its
four-bit weights; sums, norms and the last choice between tokens are made in float32.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear, scaled_dot_product_attention, silu

from sqlcrystal.errors import ConfigError

ARCHITECTURE = "qwen2"
CANDIDATES = 64
"""Tokens that are weighed again in float32 before one is chosen; more than any sampler here looks at."""
CHUNK = 512
"""Tokens of a prompt that are read at once."""

Linear = Callable[[Tensor], Tensor]


class Shape(NamedTuple):
    """The dimensions of a model, as its file gives them."""

    layers: int
    heads: int
    key_heads: int
    head_size: int
    rope_base: float
    epsilon: float
    context: int


class Layer(NamedTuple):
    """One layer's norms and products, in the order they are applied."""

    attention_norm: Tensor
    queries_keys_values: Linear
    attention_output: Linear
    feed_norm: Tensor
    gate_and_up: Linear
    down: Linear


class Transformer:
    """Reads prompts into keys and values, and writes the next token of many replies at once."""

    def __init__(self, reader: Any) -> None:
        """Unpack every tensor of an opened GGUF file."""
        self.shape = _shape(reader.fields)
        tensors = {tensor.name: tensor for tensor in reader.tensors}
        weights = _Weights(tensors)
        self._embedding = weights.matrix("token_embd.weight")
        self._layers = [_layer(weights, index) for index in range(self.shape.layers)]
        self._last_norm = weights.vector("output_norm.weight")
        self._head = weights.matrix("output.weight") if "output.weight" in tensors else self._embedding
        self._logits = _product(self._head)
        size = self.shape.head_size
        self._frequencies = 1.0 / self.shape.rope_base ** (torch.arange(0, size, 2, dtype=torch.float32) / size)

    def memory(self, *leading: int, length: int) -> Tensor:
        """Room for keys and values: (2, layers, *leading, key heads, length, head size)."""
        shape = self.shape
        return torch.zeros(2, shape.layers, *leading, shape.key_heads, length, shape.head_size, dtype=torch.bfloat16)

    def read(self, tokens: Sequence[int], memory: Tensor, *, known: int) -> "Candidates":
        """Fill a prompt's memory from its first unknown token on; the candidates for what comes after it."""
        state = torch.empty(0)
        for start in range(known, len(tokens), CHUNK):
            positions = torch.arange(start, min(start + CHUNK, len(tokens)))
            state = self._state(torch.tensor(tokens[start : start + CHUNK]), positions, OnePrompt(memory, positions))
        return self._candidates(state[-1:])

    def write(self, tokens: Tensor, lengths: Tensor, memory: Tensor) -> "Candidates":
        """Write one more token of every reply: row i of memory holds `lengths[i]` tokens and takes `tokens[i]` in."""
        return self._candidates(self._state(tokens, lengths, ManyReplies(memory, lengths)))

    def _state(self, tokens: Tensor, positions: Tensor, memory: "OnePrompt | ManyReplies") -> Tensor:
        state = self._embedding[tokens].float()
        rotation = Rotation.to(positions, self._frequencies)
        for index, layer in enumerate(self._layers):
            state = state + layer.attention_output(self._attended(index, state, rotation, memory))
            gate, up = layer.gate_and_up(self._normed(state, layer.feed_norm)).chunk(2, dim=-1)
            state = state + layer.down(silu(gate) * up)
        return state

    def _attended(self, index: int, state: Tensor, rotation: "Rotation", memory: "OnePrompt | ManyReplies") -> Tensor:
        shape, layer, rows = self.shape, self._layers[index], len(state)
        mixed = layer.queries_keys_values(self._normed(state, layer.attention_norm))
        heads = mixed.view(rows, -1, shape.head_size).split((shape.heads, shape.key_heads, shape.key_heads), dim=1)
        queries = rotation.applied(heads[0]).view(rows, shape.key_heads, -1, shape.head_size)
        return memory.attend(index, queries, rotation.applied(heads[1]), heads[2]).reshape(rows, -1)

    def _normed(self, state: Tensor, weight: Tensor) -> Tensor:
        return torch.nn.functional.rms_norm(state, (state.shape[-1],), weight, self.shape.epsilon).bfloat16()

    def _candidates(self, state: Tensor) -> "Candidates":
        """Find the most likely tokens; bfloat16 is too coarse to order them, so they are weighed again."""
        normed = torch.nn.functional.rms_norm(state, (state.shape[-1],), self._last_norm, self.shape.epsilon)
        tokens = self._logits(normed.bfloat16()).topk(CANDIDATES, dim=-1).indices
        logits = torch.einsum("rd,rcd->rc", normed, self._head[tokens].float())
        order = logits.argsort(dim=-1, descending=True)
        return Candidates(tokens.gather(1, order), logits.gather(1, order))


class Candidates(NamedTuple):
    """The most likely next tokens of each row, best first, with their logits."""

    tokens: Tensor
    logits: Tensor


class Rotation(NamedTuple):
    """Rotary positions, by which the halves of every head are turned."""

    cosine: Tensor
    sine: Tensor

    @classmethod
    def to(cls, positions: Tensor, frequencies: Tensor) -> "Rotation":
        """Compute the rotation of each position."""
        angles = positions[:, None].float() * frequencies
        angles = torch.cat((angles, angles), dim=-1)[:, None, :]
        return cls(angles.cos(), angles.sin())

    def applied(self, heads: Tensor) -> Tensor:
        """Turn the heads to their positions."""
        first, second = heads.chunk(2, dim=-1)
        turned = heads * self.cosine + torch.cat((-second, first), dim=-1) * self.sine
        return turned.bfloat16()


class OnePrompt:
    """Keys and values of one prompt, some positions of which are read now: (2, layers, heads, length, size)."""

    def __init__(self, memory: Tensor, positions: Tensor) -> None:
        self._memory = memory
        self._start, self._stop = int(positions[0]), int(positions[-1]) + 1
        self._mask = _mask(torch.arange(self._stop)[None, :] > positions[:, None])

    def attend(self, layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Take keys and values in, and let every token look at itself and at those before it."""
        held = self._memory[:, layer, :, None, : self._stop]
        held[0, :, 0, self._start :], held[1, :, 0, self._start :] = keys.transpose(0, 1), values.transpose(0, 1)
        # The heads that share their keys do so by a stride of zero, uncopied: (key heads, sharing, tokens, size).
        sharing = queries.permute(1, 2, 0, 3)
        held = held.expand(-1, -1, sharing.shape[1], -1, -1)
        return scaled_dot_product_attention(sharing, held[0], held[1], attn_mask=self._mask).permute(2, 0, 1, 3)


class ManyReplies:
    """Keys and values of many replies, each of a length of its own: (2, layers, rows, heads, length, size)."""

    def __init__(self, memory: Tensor, lengths: Tensor) -> None:
        self._memory, self._lengths = memory, lengths
        self._rows = torch.arange(len(lengths))
        self._longest = int(lengths.max()) + 1
        self._mask = _mask(torch.arange(self._longest)[None, :] > lengths[:, None])[:, None, None, :]

    def attend(self, layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Take keys and values in behind each row's own, and let each row look at its own."""
        held = self._memory[:, layer, : len(self._rows), :, : self._longest]
        held[0, self._rows, :, self._lengths], held[1, self._rows, :, self._lengths] = keys, values
        return scaled_dot_product_attention(queries, held[0], held[1], attn_mask=self._mask)


def _mask(hidden: Tensor) -> Tensor:
    """Compute the amounts to add to scores so that nothing attends to what is hidden."""
    return torch.zeros(hidden.shape, dtype=torch.bfloat16).masked_fill_(hidden, -math.inf)


class _Weights:
    def __init__(self, tensors: dict[str, Any]) -> None:
        self._tensors = tensors

    def vector(self, name: str) -> Tensor:
        return torch.from_numpy(self._unpacked(name))

    def matrix(self, *names: str) -> Tensor:
        return torch.cat([torch.from_numpy(self._unpacked(name)).bfloat16() for name in names])

    def bias(self, *names: str) -> Tensor | None:
        if names[0] not in self._tensors:
            return None
        return torch.cat([self.vector(name) for name in names]).bfloat16()

    def _unpacked(self, name: str) -> "np.ndarray[Any, np.dtype[np.float32]]":
        from gguf.quants import dequantize

        tensor = self._tensors[name]
        # A copy, since unpacked data comes as a view of the file, which must not be written to.
        return np.array(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)


def _layer(weights: _Weights, index: int) -> Layer:
    block = f"blk.{index}."
    mixed = [f"{block}attn_{part}" for part in "qkv"]
    return Layer(
        attention_norm=weights.vector(f"{block}attn_norm.weight"),
        queries_keys_values=_product(
            weights.matrix(*(f"{part}.weight" for part in mixed)), weights.bias(*(f"{part}.bias" for part in mixed))
        ),
        attention_output=_product(weights.matrix(f"{block}attn_output.weight")),
        feed_norm=weights.vector(f"{block}ffn_norm.weight"),
        gate_and_up=_product(weights.matrix(f"{block}ffn_gate.weight", f"{block}ffn_up.weight")),
        down=_product(weights.matrix(f"{block}ffn_down.weight")),
    )


def _product(weight: Tensor, bias: Tensor | None = None) -> Linear:
    """Lay the weight out once as the processor wants it, where PyTorch was built to do so, and multiply by it."""
    if not torch.backends.mkldnn.is_available():
        return lambda state: linear(state, weight, bias)
    laid_out = torch.ops.mkldnn._reorder_linear_weight(weight, None)
    multiply = torch.ops.mkldnn._linear_pointwise
    return lambda state: multiply(state, laid_out, bias, "none", [], "")


def _shape(metadata: Any) -> Shape:
    architecture = str(metadata["general.architecture"].contents())
    if architecture != ARCHITECTURE:
        raise ConfigError.unknown("model: the architecture of its GGUF file", architecture, (ARCHITECTURE,))

    def field(name: str) -> Any:
        return metadata[f"{ARCHITECTURE}.{name}"].contents()

    heads, width = int(field("attention.head_count")), int(field("embedding_length"))
    return Shape(
        layers=int(field("block_count")),
        heads=heads,
        key_heads=int(field("attention.head_count_kv")),
        head_size=width // heads,
        rope_base=float(field("rope.freq_base")),
        epsilon=float(field("attention.layer_norm_rms_epsilon")),
        context=int(field("context_length")),
    )
