"""SParC and CoSQL dev: dialogues over Spider's databases, each turn a question that may go on from those before it."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct, field

from sqlcrystal.benchmarks.cases import Benchmark, Case, LaterTurn, make_benchmark
from sqlcrystal.benchmarks.files import find_file, find_folder, read_records, require_folder
from sqlcrystal.benchmarks.locations import locate
from sqlcrystal.errors import DataError
from sqlcrystal.types import Question

SPARC, COSQL = "sparc", "cosql"


class _Turn(Struct):
    question: str = ""
    utterance: str = ""
    """The official files' name for the question."""
    query: str = ""


class _Dialogue(Struct):
    db_id: str = ""
    database: str = field(name="database_id", default="")
    turns: list[_Turn] = []
    interaction: list[_Turn] = []


def load(data: Path | None, databases: Sequence[str] = (), *, name: str) -> Benchmark:
    """Load NAME_dev.json, or dev.json as the official archives call it, with database/ beside it or as given."""
    folder = require_folder(data, name)
    path = find_file(folder, f"{name}_dev.json") or find_file(folder, "dev.json")
    if path is None:
        raise DataError(f"--data: no {name}_dev.json in {folder} or two folders below")
    cases = [
        case
        for number, dialogue in enumerate(read_records(path, _Dialogue), 1)
        for case in _cases(number, dialogue, path)
    ]
    folders = [found for place in (path.parent, folder) if (found := find_folder(place, "database"))]
    names = (case.question.database for case in cases)
    return make_benchmark(name, cases, locate(names, folders=folders, given=databases))


load_sparc, load_cosql = partial(load, name=SPARC), partial(load, name=COSQL)


def _cases(number: int, dialogue: _Dialogue, path: Path) -> list[Case]:
    """Number the turns of a dialogue; a turn without a query of its own is not asked."""
    cases: list[Case] = []
    database = dialogue.db_id or dialogue.database
    for place, turn in enumerate(dialogue.turns or dialogue.interaction, 1):
        text = (turn.question or turn.utterance).strip()
        if not database or not text:
            raise DataError(f"{path}: dialogue {number}, turn {place}: needs a database and a question")
        if not turn.query.strip():
            continue
        question = Question(id=f"{number}-{place}", database=database, text=text, difficulty=f"turn {len(cases) + 1}")
        before = tuple(case.question for case in cases)
        made = (
            LaterTurn(question=question, sql=turn.query, earlier=before)
            if before
            else Case(question=question, sql=turn.query)
        )
        cases.append(made)
    return cases
