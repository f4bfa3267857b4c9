"""GGUF weights on this machine, whichever runtime reads them."""

import hashlib
from pathlib import Path

import msgspec
from msgspec import Struct

from sqlcrystal.errors import DataError
from sqlcrystal.models.catalogue import KNOWN_MODELS, file_sha256, known_model, weights_path

SAMPLER = {"top_k": 40, "top_p": 0.95, "min_p": 0.05}
"""How a token is drawn when the temperature is above zero; part of the digest."""


class LocalWeights(Struct, frozen=True, kw_only=True):
    """A GGUF file on this machine, whichever runtime reads it."""

    name: str
    path: Path
    sha256: str

    @classmethod
    def of(cls, *, name: str, path: str) -> "LocalWeights":
        """The file of a known model, or a file of one's own."""
        if not path:
            return cls(name=known_model(name).name, path=weights_path(name), sha256=known_model(name).sha256)
        file = Path(path).expanduser()
        if name in KNOWN_MODELS:
            return cls(name=name, path=file, sha256=known_model(name).sha256)
        return cls(name=name or file.stem, path=file, sha256=file_sha256(file))

    @property
    def digest(self) -> str:
        """What a model with these weights is known by in recordings."""
        return weights_digest(self.sha256)

    def check(self) -> None:
        """Refuse a file that is not there, or not what its name says."""
        if not self.path.is_file():
            raise DataError(f"model {self.name}: no weights in the cache; run: sqlcrystal model pull {self.name}")
        if file_sha256(self.path) != self.sha256:
            raise DataError(
                f"model {self.name}: {self.path} is not the file of that name (sha256 differs); "
                f"run: sqlcrystal model pull {self.name}"
            )


def weights_digest(sha256: str) -> str:
    """The digest of a local model: its weights (which hold quantisation and chat template) and how tokens are drawn."""
    return hashlib.sha256(
        msgspec.json.encode(
            {"kind": "local", "weights": sha256, "template": "gguf", "sampler": SAMPLER}, order="sorted"
        )
    ).hexdigest()
