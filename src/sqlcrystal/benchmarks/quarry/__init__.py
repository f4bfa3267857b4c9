"""Quarry, the bundled benchmark: small databases whose conventions the schema does not show."""

import tomllib
from importlib import resources

import msgspec
from msgspec import Struct

from sqlcrystal.benchmarks.cases import Benchmark, Case, make_benchmark
from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.types import Question

DIFFICULTIES = ("simple", "moderate", "challenging")
FIRST_EDITION = 26
"""The questions of a database up to this number made up the first edition; telecom had one fewer."""
FEWER = {"telecom": 25}
INSTANCES = 4
"""Further instances of each database that the rule `instances` asks."""


class QuarryQuestion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One question as written: its words, its gold, and plausible queries that are wrong."""

    id: str
    text: str
    evidence: str = ""
    difficulty: str
    conventions: tuple[str, ...] = ()
    sql: str
    wrong: tuple[str, ...]
    empty: bool = False
    """The right answer is no row, or nothing but NULL and zero: an empty result then betrays nobody."""

    @property
    def database(self) -> str:
        """The database the question is asked of, which its id starts with."""
        return self.id.rpartition("-")[0]

    @property
    def edition(self) -> int:
        """The edition of Quarry that brought the question."""
        number = int(self.id.rpartition("-")[2])
        return 1 if number <= FEWER.get(self.database, FIRST_EDITION) else 2

    @property
    def question(self) -> Question:
        """Tell what a solver may see: everything but the gold, the wrong queries and the tags."""
        return Question(
            id=self.id, database=self.database, text=self.text, evidence=self.evidence, difficulty=self.difficulty
        )


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    question: tuple[QuarryQuestion, ...]


def names() -> tuple[str, ...]:
    """Every database of Quarry, in alphabetical order."""
    files = (file.name for file in resources.files(__name__).iterdir())
    return tuple(sorted(file.removesuffix(".toml") for file in files if file.endswith(".toml")))


def entries(name: str) -> tuple[QuarryQuestion, ...]:
    """The questions of one database, in the order of its file."""
    if name not in names():
        raise ConfigError.unknown("database", name, names())
    text = resources.files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    try:
        return msgspec.convert(tomllib.loads(text), _File).question
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise DataError(f"{name}.toml: {error}") from error


def paraphrases() -> dict[str, tuple[str, ...]]:
    """Read two other wordings each of 200 questions, by id."""
    text = resources.files(__name__).joinpath("paraphrases.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, tuple[str, ...]])


def instances(name: str) -> tuple[str, ...]:
    """Give the files of a database's further instances; builds those that were not built yet."""
    from sqlcrystal.benchmarks.quarry import build

    return tuple(str(build.path(name, instance=number)) for number in range(1, INSTANCES + 1))


def load(*, edition: int = 2) -> Benchmark:
    """Quarry as a benchmark, up to an edition; builds the databases that were not built yet."""
    from sqlcrystal.benchmarks.quarry import build

    wordings = paraphrases()
    cases = [
        Case(
            question=entry.question,
            sql=entry.sql,
            wrong=entry.wrong,
            paraphrases=wordings.get(entry.id, ()),
            known=entry.edition < edition,
        )
        for name in names()
        for entry in entries(name)
        if entry.edition <= edition
    ]
    return make_benchmark(
        "quarry" if edition == 2 else f"quarry-{edition}", cases, {name: str(build.path(name)) for name in names()}
    )
