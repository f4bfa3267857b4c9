"""From a name or a table of settings to a model: the one table of model kinds."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

import msgspec

from sqlcrystal.config import model_table
from sqlcrystal.errors import ConfigError
from sqlcrystal.models.catalogue import KNOWN_MODELS
from sqlcrystal.models.local import BatchedModel, BatchedSettings, LocalModel, LocalSettings
from sqlcrystal.models.openai import OpenAIModel, OpenAISettings
from sqlcrystal.protocols import LanguageModel

ModelSettings: TypeAlias = LocalSettings | BatchedSettings | OpenAISettings

MODEL_KINDS: dict[str, tuple[type[Any], Callable[[Any], LanguageModel]]] = {
    "local": (LocalSettings, LocalModel),
    "batched": (BatchedSettings, BatchedModel),
    "openai": (OpenAISettings, OpenAIModel),
}


def open_model(spec: str | Mapping[str, Any] | ModelSettings) -> LanguageModel:
    """Open the model that a name, a URL or a table of settings stands for; weights are read on its first call."""
    settings = model_settings(spec)
    _, make = MODEL_KINDS[str(settings.__struct_config__.tag)]
    return make(settings)


@contextmanager
def using_model(spec: str | Mapping[str, Any] | ModelSettings) -> Iterator[LanguageModel]:
    """Open the model for the length of a block; its weights or connections are released at the end."""
    model = open_model(spec)
    try:
        yield model
    finally:
        model.close()


def model_settings(spec: str | Mapping[str, Any] | ModelSettings) -> ModelSettings:
    """Validate settings: a known name, a path ending in .gguf, `http://host/v1#model`, or a table with `kind`."""
    if isinstance(spec, str):
        spec = _named(spec)
    if not isinstance(spec, Mapping):
        return spec
    kind = spec.get("kind", "local")
    if kind not in MODEL_KINDS:
        raise ConfigError.unknown("model.kind", kind, MODEL_KINDS)
    try:
        settings: ModelSettings = msgspec.convert({**spec, "kind": kind}, type=MODEL_KINDS[kind][0])
    except msgspec.ValidationError as error:
        raise ConfigError(f"model: {error}") from None
    return settings


def _named(text: str) -> dict[str, Any]:
    table = model_table(text)
    if "name" in table and table["kind"] == "local" and text not in KNOWN_MODELS:
        raise ConfigError.unknown("model", text, [*KNOWN_MODELS, "FILE.gguf", "http://HOST/v1#NAME"])
    return table
