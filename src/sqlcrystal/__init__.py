"""Text-to-SQL that keeps what its repairs teach it, and measures honestly what that is worth.

What a program needs stands here: the verbs, and the records they take and give. Each is loaded when it is first asked
for, so that `import sqlcrystal` costs next to nothing. Modules below are for those who want to exchange a part.
"""

from typing import TYPE_CHECKING

from sqlcrystal.first_use import on_first_use
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
    from sqlcrystal.models.embeddings import open_embedder
    from sqlcrystal.models.opening import open_model
    from sqlcrystal.models.recorded import Recorded
    from sqlcrystal.models.recording import Recording
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

__getattr__ = on_first_use(
    __name__,
    {
        "bank": ("CardStore",),
        "benchmarks.cases": ("Benchmark", "Case"),
        "benchmarks.catalogue": ("load_benchmark",),
        "benchmarks.evaluate": ("Scoring", "score_predictions"),
        "config": ("StudyFile", "read_study"),
        "databases": ("open_database",),
        "errors": ("InfrastructureError", "SqlcrystalError", "UserError"),
        "measurement.comparison": ("Comparison", "compare"),
        "measurement.outcome_files": ("read_outcomes",),
        "models": ("Recorded", "Recording", "open_embedder", "open_model"),
        "serving": ("AsyncCrystal", "Crystal", "ServedAnswer"),
        "study.opening": ("run_study",),
        "types": (*("Attempt", "Card", "Completion", "Episode", "Failure", "Message", "Question", "Rows", "Sampling"),),
    },
)


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted(__all__)
