"""Text-to-SQL that keeps what its repairs teach it, and measures honestly what that is worth.

What a program needs stands here: the verbs, and the records they take and give. Each is loaded when it is first asked
for, so that `import sqlcrystal` costs next to nothing. Modules below are for who wants to exchange a part.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from sqlcrystal.version import __version__

if TYPE_CHECKING:
    from sqlcrystal.bank import CardStore
    from sqlcrystal.benchmarks.cases import Benchmark, Case
    from sqlcrystal.benchmarks.catalogue import load_benchmark
    from sqlcrystal.benchmarks.evaluate import Scoring, score_predictions
    from sqlcrystal.config import StudyFile, read_study
    from sqlcrystal.databases import open_database
    from sqlcrystal.errors import InfrastructureError, SqlcrystalError, UserError
    from sqlcrystal.measurement.comparison import Comparison, compare
    from sqlcrystal.measurement.outcome_files import read_outcomes
    from sqlcrystal.models import Recorded, Recording, open_embedder, open_model
    from sqlcrystal.serving import AsyncCrystal, Crystal, ServedAnswer
    from sqlcrystal.study.opening import run_study
    from sqlcrystal.types import Attempt, Card, Completion, Episode, Failure, Message, Question, Rows, Sampling

__all__ = [
    "AsyncCrystal",
    "Attempt",
    "Benchmark",
    "Card",
    "CardStore",
    "Case",
    "Comparison",
    "Completion",
    "Crystal",
    "Episode",
    "Failure",
    "InfrastructureError",
    "Message",
    "Question",
    "Recorded",
    "Recording",
    "Rows",
    "Sampling",
    "Scoring",
    "ServedAnswer",
    "SqlcrystalError",
    "StudyFile",
    "UserError",
    "__version__",
    "compare",
    "load_benchmark",
    "open_database",
    "open_embedder",
    "open_model",
    "read_outcomes",
    "read_study",
    "run_study",
    "score_predictions",
]

_MODULES = {
    "sqlcrystal.bank": ("CardStore",),
    "sqlcrystal.benchmarks.cases": ("Benchmark", "Case"),
    "sqlcrystal.benchmarks.catalogue": ("load_benchmark",),
    "sqlcrystal.benchmarks.evaluate": ("Scoring", "score_predictions"),
    "sqlcrystal.config": ("StudyFile", "read_study"),
    "sqlcrystal.databases": ("open_database",),
    "sqlcrystal.errors": ("InfrastructureError", "SqlcrystalError", "UserError"),
    "sqlcrystal.measurement.comparison": ("Comparison", "compare"),
    "sqlcrystal.measurement.outcome_files": ("read_outcomes",),
    "sqlcrystal.models": ("Recorded", "Recording", "open_embedder", "open_model"),
    "sqlcrystal.serving": ("AsyncCrystal", "Crystal", "ServedAnswer"),
    "sqlcrystal.study.opening": ("run_study",),
    "sqlcrystal.types": (
        *("Attempt", "Card", "Completion", "Episode", "Failure", "Message", "Question", "Rows", "Sampling"),
    ),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    """Load a public name on first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'sqlcrystal' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted(__all__)
