"""Language models behind one port: local, any OpenAI-compatible endpoint, scripted, recorded."""

from sqlcrystal.models.opening import MODEL_KINDS, ModelSettings, model_settings, open_model
from sqlcrystal.models.recorded import Mode, Recorded
from sqlcrystal.models.recording import Recording
from sqlcrystal.models.scripted import ScriptedModel

__all__ = [
    "MODEL_KINDS",
    "Mode",
    "ModelSettings",
    "Recorded",
    "Recording",
    "ScriptedModel",
    "model_settings",
    "open_model",
]
