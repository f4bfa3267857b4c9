"""Language models behind one port: local, any OpenAI-compatible endpoint, scripted, recorded.

Names are loaded when they are first asked for: a command that asks a model need not wait for embedders.
"""

from typing import TYPE_CHECKING

from sqlcrystal.first_use import on_first_use

if TYPE_CHECKING:
    from sqlcrystal.models.embedding_cache import CachedEmbedder
    from sqlcrystal.models.embeddings import EMBEDDER_KINDS, open_embedder
    from sqlcrystal.models.opening import MODEL_KINDS, ModelSettings, model_settings, open_model, using_model
    from sqlcrystal.models.recorded import Mode, Recorded
    from sqlcrystal.models.recording import Recording
    from sqlcrystal.models.scripted import ScriptedModel

__all__ = [
    "EMBEDDER_KINDS",
    "MODEL_KINDS",
    "CachedEmbedder",
    "Mode",
    "ModelSettings",
    "Recorded",
    "Recording",
    "ScriptedModel",
    "model_settings",
    "open_embedder",
    "open_model",
    "using_model",
]

__getattr__ = on_first_use(
    __name__,
    {
        "embedding_cache": ("CachedEmbedder",),
        "embeddings": ("EMBEDDER_KINDS", "open_embedder"),
        "opening": ("MODEL_KINDS", "ModelSettings", "model_settings", "open_model", "using_model"),
        "recorded": ("Mode", "Recorded"),
        "recording": ("Recording",),
        "scripted": ("ScriptedModel",),
    },
)
