"""Text-to-SQL that keeps what its repairs teach it, and measures honestly what that is worth.

The verbs that a program needs stand here, and the records they take and give; the modules below are for exchanging a
part. Each name is loaded when it is first asked for: loading all takes 0.6 s of processor time, which every command
would wait for, since importing any module of the package imports this one.
"""

from typing import TYPE_CHECKING

from sqlcrystal.first_use import on_first_use
from sqlcrystal.version import __version__ as __version__

if TYPE_CHECKING:  # for type checkers and editors; tests hold these names equal to those below
    from sqlcrystal.bank import CardStore as CardStore
    from sqlcrystal.benchmarks.cases import Benchmark as Benchmark
    from sqlcrystal.benchmarks.cases import Case as Case
    from sqlcrystal.benchmarks.catalogue import load_benchmark as load_benchmark
    from sqlcrystal.benchmarks.evaluate import Scoring as Scoring
    from sqlcrystal.benchmarks.evaluate import score_predictions as score_predictions
    from sqlcrystal.config import StudyFile as StudyFile
    from sqlcrystal.config import read_study as read_study
    from sqlcrystal.databases import open_database as open_database
    from sqlcrystal.errors import InfrastructureError as InfrastructureError
    from sqlcrystal.errors import SqlcrystalError as SqlcrystalError
    from sqlcrystal.errors import UserError as UserError
    from sqlcrystal.measurement.comparison import Comparison as Comparison
    from sqlcrystal.measurement.comparison import compare as compare
    from sqlcrystal.measurement.outcome_files import read_outcomes as read_outcomes
    from sqlcrystal.models.embeddings import open_embedder as open_embedder
    from sqlcrystal.models.opening import open_model as open_model
    from sqlcrystal.models.recorded import Recorded as Recorded
    from sqlcrystal.models.recording import Recording as Recording
    from sqlcrystal.serving import AsyncCrystal as AsyncCrystal
    from sqlcrystal.serving import Crystal as Crystal
    from sqlcrystal.serving import ServedAnswer as ServedAnswer
    from sqlcrystal.study.opening import run_study as run_study
    from sqlcrystal.types import Attempt as Attempt
    from sqlcrystal.types import Card as Card
    from sqlcrystal.types import Completion as Completion
    from sqlcrystal.types import Episode as Episode
    from sqlcrystal.types import Failure as Failure
    from sqlcrystal.types import Message as Message
    from sqlcrystal.types import Question as Question
    from sqlcrystal.types import Rows as Rows
    from sqlcrystal.types import Sampling as Sampling

_HOMES: dict[str, tuple[str, ...]] = {
    "bank": ("CardStore",),
    "benchmarks.cases": ("Benchmark", "Case"),
    "benchmarks.catalogue": ("load_benchmark",),
    "benchmarks.evaluate": ("Scoring", "score_predictions"),
    "config": ("StudyFile", "read_study"),
    "databases": ("open_database",),
    "errors": ("InfrastructureError", "SqlcrystalError", "UserError"),
    "measurement.comparison": ("Comparison", "compare"),
    "measurement.outcome_files": ("read_outcomes",),
    "models.embeddings": ("open_embedder",),
    "models.opening": ("open_model",),
    "models.recorded": ("Recorded",),
    "models.recording": ("Recording",),
    "serving": ("AsyncCrystal", "Crystal", "ServedAnswer"),
    "study.opening": ("run_study",),
    "types": ("Attempt", "Card", "Completion", "Episode", "Failure", "Message", "Question", "Rows", "Sampling"),
}
__all__ = sorted(["__version__", *(name for names in _HOMES.values() for name in names)])  # noqa: PLE0605
__getattr__ = on_first_use(__name__, _HOMES)


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return __all__
