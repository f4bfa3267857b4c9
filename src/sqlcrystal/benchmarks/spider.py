"""Spider 1.0 in its dev, train and test layouts, and the dialogues over its databases: SParC and CoSQL dev."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from sqlcrystal.benchmarks.cases import Benchmark, Case, LaterTurn, make_benchmark
from sqlcrystal.benchmarks.files import find_file, find_folder, locate, read_records, require_folder
from sqlcrystal.errors import DataError
from sqlcrystal.types import Question

_LIKE = 9  # the operator's place in Spider's list of comparison operators


def hardness(sql: dict[str, Any]) -> str:
    """easy, medium, hard or extra; empty when the parsed SQL is not Spider's shape."""
    try:
        clauses, nested, others = _clauses(sql), _nested(sql), _others(sql)
    except (KeyError, IndexError, TypeError):
        return ""
    if nested == 0:
        if clauses <= 1 and others == 0:
            return "easy"
        if (others <= 2 and clauses <= 1) or (clauses <= 2 and others < 2):
            return "medium"
        if (others > 2 and clauses <= 2) or (clauses == 3 and others <= 2):
            return "hard"
    elif nested == 1 and clauses <= 1 and others == 0:
        return "hard"
    return "extra"


def _clauses(sql: dict[str, Any]) -> int:
    """Count WHERE, GROUP BY, ORDER BY, LIMIT, each join, each OR and each LIKE."""
    present = sum(len(sql[clause]) > 0 for clause in ("where", "groupBy", "orderBy")) + (sql["limit"] is not None)
    joins = max(len(sql["from"]["table_units"]) - 1, 0)
    connectives = [word for clause in _conditions(sql) for word in clause[1::2]]
    likes = sum(unit[1] == _LIKE for unit in _units(sql))
    return int(present + joins + connectives.count("or") + likes)


def _nested(sql: dict[str, Any]) -> int:
    """Subqueries in conditions, and set operations."""
    inner = sum(isinstance(value, dict) for unit in _units(sql) for value in (unit[3], unit[4]))
    return inner + sum(sql[operator] is not None for operator in ("intersect", "except", "union"))


def _others(sql: dict[str, Any]) -> int:
    """Several aggregates, several columns, several conditions, several groupings: one point each."""
    aggregates = _aggregates(sql["select"][1]) + _aggregates(sql["where"][::2]) + _aggregates(sql["groupBy"])
    if sql["orderBy"]:
        values = sql["orderBy"][1]
        aggregates += _aggregates([unit[1] for unit in values if unit[1]] + [unit[2] for unit in values if unit[2]])
    aggregates += _aggregates(sql["having"])
    several = (len(sql["select"][1]), len(sql["where"]), len(sql["groupBy"]))
    return (aggregates > 1) + sum(count > 1 for count in several)


def _aggregates(units: Iterable[Any]) -> int:
    """Units whose first field is not zero; the official counter reads connectives and negations this way too."""
    return sum(unit[0] != 0 for unit in units)


def _conditions(sql: dict[str, Any]) -> tuple[Sequence[Any], ...]:
    return sql["from"]["conds"], sql["where"], sql["having"]


def _units(sql: dict[str, Any]) -> list[Any]:
    return [unit for clause in _conditions(sql) for unit in clause[::2]]


# ── the loader ───────────────────────────────────────────────────────────────────────────────────────────────────────


class _SpiderEntry(Struct):
    db_id: str
    question: str
    query: str
    sql: dict[str, Any] | None = None


class _Paraphrase(Struct):
    """A question in other words; `of` is the position of the one it repeats."""

    question: str
    of: str


def load_dev(data: Path | None, databases: Sequence[str] = ()) -> Benchmark:
    """Load Spider dev: dev.json, database/, and paraphrases.json if it is there."""
    return _load("spider", data, ("dev.json",), databases)


def load_train(data: Path | None, databases: Sequence[str] = ()) -> Benchmark:
    """Spider train: train_spider.json, train_others.json if it is there, and database/."""
    return _load("spider-train", data, ("train_spider.json", "train_others.json"), databases)


def load_test(data: Path | None, databases: Sequence[str] = ()) -> Benchmark:
    """Spider test: test.json and test_database/, or database/ where they were merged."""
    return _load("spider-test", data, ("test.json",), databases)


def _load(name: str, data: Path | None, file_names: Sequence[str], databases: Sequence[str]) -> Benchmark:
    folder = require_folder(data, name)
    paths = [find_file(folder, file_name) for file_name in file_names]
    if paths[0] is None:
        raise DataError(f"--data: no {file_names[0]} in {folder} or two folders below")
    entries = [entry for path in paths if path for entry in read_records(path, _SpiderEntry)]
    others = _paraphrases(paths[0].with_name("paraphrases.json"))
    cases = [_case(position, entry, others) for position, entry in enumerate(entries)]
    order = ("test_database", "database") if name == "spider-test" else ("database", "test_database")
    folders = [
        existing for name in order if (existing := find_folder(paths[0].parent, name) or find_folder(folder, name))
    ]
    return make_benchmark(
        name, cases, locate((case.question.database for case in cases), folders=folders, given=databases)
    )


def _paraphrases(path: Path) -> dict[str, list[str]]:
    """Read the other wordings of each question, by its position."""
    wordings: dict[str, list[str]] = {}
    for entry in read_records(path, _Paraphrase) if path.is_file() else ():
        wordings.setdefault(entry.of, []).append(entry.question)
    return wordings


def _case(position: int, entry: _SpiderEntry, paraphrases: Mapping[str, Sequence[str]]) -> Case:
    """Spider numbers its questions by position only."""
    question = Question(
        id=str(position),
        database=entry.db_id,
        text=entry.question,
        difficulty=hardness(entry.sql) if entry.sql else "",
    )
    return Case(question=question, sql=entry.query, paraphrases=tuple(paraphrases.get(question.id, ())))


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
