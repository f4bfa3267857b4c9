"""The thread behind a batched model: it reads each prompt as it comes, and writes all replies token by token."""

import os
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from importlib.metadata import version
from typing import Any

import torch
from gguf import GGUFReader
from torch import Tensor

from sqlcrystal.errors import ConfigError, ModelUnavailable
from sqlcrystal.models.catalogue import SAMPLER, LocalWeights
from sqlcrystal.models.transformer import Candidates, Transformer
from sqlcrystal.types import Completion, Message, Sampling

# ── a GGUF file's chat template and vocabulary ───────────────────────────────────────────────────────────────────────

PIECES = {
    "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}
"""Patterns that cut text before byte pairs are joined, by the name that the file gives."""
ENDS = ("<|im_end|>", "<|endoftext|>")
"""The ends of a reply besides the token that the file names, as llama.cpp has them."""
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
        """Tokenise the prompt, up to where the reply begins."""
        prompt = self._template.render(
            messages=[{"role": message.role, "content": message.content} for message in messages],
            add_generation_prompt=True,
        )
        tokens: list[int] = self._tokenizer.encode(prompt, add_special_tokens=False).ids
        return tokens

    def text(self, tokens: Sequence[int]) -> str:
        """Decode a reply."""
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


# ── the engine ───────────────────────────────────────────────────────────────────────────────────────────────────────

RUNTIME = f"batched, torch {version('torch').partition('+')[0]}, bfloat16"
ROOM = 256
"""Memory for replies grows by so many tokens at a time."""


class Reply:
    """One call under way: its prompt, the tokens written so far, and the future of its caller."""

    def __init__(self, prompt: Sequence[int], sampling: Sampling, stop: Sequence[str]) -> None:
        self.prompt, self.sampling, self.stop = prompt, sampling, stop
        self.written: list[int] = []
        self.seconds = 0.0
        """Its share of the machine's time."""
        self.future: Future[Completion] = Future()
        self._generator = torch.Generator().manual_seed(sampling.index)

    @property
    def length(self) -> int:
        """Count the tokens in the reply's row of memory: all but the one that was written last."""
        return len(self.prompt) + len(self.written) - 1

    def take(self, candidates: Candidates, row: int, seconds: float) -> None:
        """Write the best candidate, or one drawn as llama.cpp draws: top k, top p, min p, then temperature."""
        self.seconds += seconds
        tokens, logits = candidates.tokens[row], candidates.logits[row, : int(SAMPLER["top_k"])]
        if self.sampling.temperature <= 0:
            self.written.append(int(tokens[0]))
            return
        likely = logits.softmax(dim=-1)
        kept = (likely.cumsum(dim=-1) - likely < SAMPLER["top_p"]) & (likely >= SAMPLER["min_p"] * likely[0])
        weights = (logits / self.sampling.temperature).masked_fill(~kept, -torch.inf).softmax(dim=-1)
        self.written.append(int(tokens[int(torch.multinomial(weights, 1, generator=self._generator))]))


class BatchEngine:
    """Owns the transformer and serves whoever asks, until it is ended."""

    text: GgufText
    context: int
    _transformer: Transformer
    _memory: Tensor
    """Keys and values of the replies under way, a row each."""
    _beginnings: "Beginnings"

    def __init__(self, weights: LocalWeights, *, slots: int, context: int, threads: int, cache_mib: int) -> None:
        """Unpack the weights and start to serve."""
        self._name, self._slots, self.context, self._cache_mib = weights.name, slots, context, cache_mib
        self._lock = threading.Lock()
        self._ended = False
        self._asked: queue.SimpleQueue[Reply | None] = queue.SimpleQueue()
        torch.set_num_threads(threads or os.cpu_count() or 1)
        opened: Future[None] = Future()
        self._thread = threading.Thread(
            target=self._run, args=(weights, opened), name=f"model {self._name}", daemon=True
        )
        self._thread.start()
        opened.result()

    def ask(self, prompt: Sequence[int], sampling: Sampling, stop: Sequence[str] = ()) -> Future[Completion]:
        """Queue a call."""
        reply = Reply(prompt, sampling, stop)
        with self._lock:
            if self._ended:
                raise ModelUnavailable(f"model {self._name}: closed while it was asked")
            self._asked.put(reply)
        return reply.future

    def end(self) -> None:
        """Serve what was asked before, then stop."""
        with self._lock:
            self._ended = True
            self._asked.put(None)
        self._thread.join()

    def _run(self, weights: LocalWeights, opened: Future[None]) -> None:
        """Do all of PyTorch's work, from unpacking on.

        A second thread that had used it would have workers of its own, and where there are more workers than
        processors OpenMP puts them to sleep after every product: half the speed.
        """
        with torch.inference_mode():
            try:
                self._open(weights)
            except Exception as error:
                opened.set_exception(error)
                return
            opened.set_result(None)
            self._serve()

    def _open(self, weights: LocalWeights) -> None:
        try:
            reader = GGUFReader(weights.path)
            self.text, self._transformer = GgufText(reader.fields), Transformer(reader)
        except (ValueError, KeyError) as error:
            raise ModelUnavailable(f"model {weights.name}: {weights.path} cannot be read: {error}") from error
        self.context = min(self.context, self._transformer.shape.context)
        self._memory = self._transformer.memory(self._slots, length=ROOM)
        self._beginnings = Beginnings(self._transformer, mebibytes=self._cache_mib)

    def _serve(self) -> None:
        replies: list[Reply] = []
        welcoming = True
        while welcoming or replies:
            try:
                welcoming = welcoming and self._welcome(replies)
                if replies:
                    self._go_on(replies)
            except Exception as error:  # too little memory, most of all: waiting callers must hear of it
                for reply in replies:
                    reply.future.set_exception(ModelUnavailable(f"model {self._name}: {error}"))
                replies.clear()

    def _welcome(self, replies: list[Reply]) -> bool:
        """Begin the replies that wait, as far as there are slots; False when the last one has come."""
        while len(replies) < self._slots and not (replies and self._asked.empty()):
            reply = self._asked.get()
            if reply is None:
                return False
            replies.append(reply)
            self._begin(len(replies) - 1, reply)
            self._hand_over(replies)
        return True

    def _begin(self, row: int, reply: Reply) -> None:
        """Read the prompt, and write the reply's first token."""
        started = time.perf_counter()
        memory, known = self._beginnings.of(reply.prompt)
        candidates = self._transformer.read(reply.prompt, memory, known=known)
        self._beginnings.keep(reply.prompt, memory)
        self._make_room(len(reply.prompt))
        self._memory[:, :, row, :, : len(reply.prompt)] = memory
        reply.take(candidates, 0, time.perf_counter() - started)

    def _go_on(self, replies: list[Reply]) -> None:
        """Write one more token of every reply."""
        started = time.perf_counter()
        self._make_room(max(reply.length for reply in replies) + 1)
        last = torch.tensor([reply.written[-1] for reply in replies])
        lengths = torch.tensor([reply.length for reply in replies])
        candidates = self._transformer.write(last, lengths, self._memory)
        share = (time.perf_counter() - started) / len(replies)
        for row, reply in enumerate(replies):
            reply.take(candidates, row, share)
        self._hand_over(replies)

    def _hand_over(self, replies: list[Reply]) -> None:
        """Settle the replies that are whole; the last row moves into the place of one that leaves."""
        for row in reversed(range(len(replies))):
            completion = self._completion(replies[row])
            if completion is None:
                continue
            replies[row].future.set_result(completion)
            last = replies.pop()
            if row < len(replies):
                replies[row] = last
                self._memory[:, :, row, :, : last.length] = self._memory[:, :, len(replies), :, : last.length]

    def _completion(self, reply: Reply) -> Completion | None:
        ended = reply.written[-1] in self.text.ends
        full = len(reply.written) >= reply.sampling.max_tokens or reply.length + 1 >= self.context
        text = self.text.text(reply.written) if ended or full or reply.stop else ""
        stopped = min((place for words in reply.stop if (place := text.find(words)) >= 0), default=None)
        if not ended and not full and stopped is None:
            return None
        return Completion(
            text=text[:stopped],
            finish_reason="length" if not ended and stopped is None else "stop",
            prompt_tokens=len(reply.prompt),
            completion_tokens=len(reply.written),
            seconds=reply.seconds,
            runtime=RUNTIME,
        )

    def _make_room(self, length: int) -> None:
        held = self._memory.shape[-2]
        if length > held:
            larger = self._transformer.memory(self._slots, length=-(-length // ROOM) * ROOM)
            larger[..., :held, :] = self._memory
            self._memory = larger


class Beginnings:
    """The prompts that were read last, with their memory; a new one starts from the longest beginning it shares."""

    def __init__(self, transformer: Transformer, *, mebibytes: int) -> None:
        """Keep at most so much memory."""
        self._transformer = transformer
        self._bytes = mebibytes * 2**20
        self._held = 0
        self._kept: OrderedDict[tuple[int, ...], tuple[Tensor, Tensor]] = OrderedDict()
        """Tokens and memory by prompt, the one used last at the end."""

    def of(self, prompt: Sequence[int]) -> tuple[Tensor, int]:
        """Memory for a prompt, and how many of its tokens are in it already; its last token is always read anew."""
        tokens = torch.tensor(prompt)
        shared = {other: _shared(tokens, kept) for other, (kept, _) in self._kept.items()}
        nearest = max(shared, key=shared.__getitem__, default=())
        known = min(shared.get(nearest, 0), len(prompt) - 1)
        memory = self._transformer.memory(length=len(prompt))
        if known:
            memory[..., :known, :] = self._kept[nearest][1][..., :known, :]
            self._kept.move_to_end(nearest)
        return memory, known

    def keep(self, prompt: Sequence[int], memory: Tensor) -> None:
        """Remember a prompt that was read, and forget those that were not used for longest."""
        key = tuple(prompt)
        if key in self._kept:
            return
        self._kept[key] = torch.tensor(prompt), memory
        self._held += memory.nbytes
        while self._held > self._bytes:
            _, (_, forgotten) = self._kept.popitem(last=False)
            self._held -= forgotten.nbytes


def _shared(tokens: Tensor, others: Tensor) -> int:
    length = min(len(tokens), len(others))
    differing = (tokens[:length] != others[:length]).nonzero()
    return int(differing[0]) if len(differing) else length
