"""Checks Quarry: every gold executes, says something, and is told apart from the wrong queries kept beside it."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import sqlglot
from msgspec import Struct
from sqlglot import expressions
from sqlglot.expressions import Select

from sqlcrystal.benchmarks import quarry
from sqlcrystal.benchmarks.quarry import DIFFICULTIES, QuarryQuestion, entries, names

QUESTIONS = 60
Table = tuple[tuple[object, ...], ...]


class QuestionFinding(Struct, frozen=True, kw_only=True):
    """Findings about one question; no problems means it is fit."""

    entry: QuarryQuestion
    rows: int
    problems: tuple[str, ...]


class Review(Struct, frozen=True, kw_only=True):
    """Findings about one database and its questions."""

    name: str
    digest: str
    bytes: int
    tables: dict[str, int]
    findings: tuple[QuestionFinding, ...]
    problems: tuple[str, ...]

    @property
    def sound(self) -> bool:
        """Tell whether neither the database nor any of its questions has a problem."""
        return not self.problems and not any(finding.problems for finding in self.findings)


def run(file: Path, sql: str, *, backwards: bool = False) -> Table:
    """The rows of a query; `backwards` has SQLite give the rows of an unordered SELECT the other way round."""
    connection = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)
    try:
        if backwards:
            connection.execute("PRAGMA reverse_unordered_selects = ON")
        return tuple(tuple(_rounded(cell) for cell in row) for row in connection.execute(sql))
    finally:
        connection.close()


def _rounded(cell: object) -> object:
    # Sums of floats depend on the order of the rows in their last digits; that is no difference between queries.
    return round(cell, 6) if isinstance(cell, float) else cell


def review(name: str, file: Path | None = None) -> Review:
    """Check one database of Quarry and all its questions."""
    file = file or quarry.path(name)
    questions = entries(name)
    tables = dict(_table_sizes(file))
    return Review(
        name=name,
        digest=quarry.digest(file),
        bytes=file.stat().st_size,
        tables=tables,
        findings=tuple(check(entry, file) for entry in questions),
        problems=tuple(_database_problems(name, questions, tables, file)),
    )


def check(entry: QuarryQuestion, file: Path) -> QuestionFinding:
    """Run the gold and every wrong query of one question."""
    try:
        gold = run(file, entry.sql)
    except sqlite3.Error as error:
        return QuestionFinding(entry=entry, rows=0, problems=(f"gold fails: {error}",))
    return QuestionFinding(entry=entry, rows=len(gold), problems=tuple(_question_problems(entry, gold, file)))


def _question_problems(entry: QuarryQuestion, gold: Table, file: Path) -> Iterator[str]:
    says_something = any(cell not in {None, 0} for row in gold for cell in row)
    if not says_something and not entry.empty:
        yield "gold is empty, NULL or zero, and the question is not marked `empty = true`"
    if says_something and entry.empty:
        yield "marked empty, but gold says something"
    if Counter(run(file, entry.sql, backwards=True)) != Counter(gold):
        yield "gold depends on the order of unordered rows"
    if any(_cuts_a_tie(select, file) for select in sqlglot.parse_one(entry.sql, dialect="sqlite").find_all(Select)):
        yield "gold's LIMIT cuts through a tie"
    if entry.difficulty not in DIFFICULTIES:
        yield f"difficulty {entry.difficulty!r} is none of {', '.join(DIFFICULTIES)}"
    if len(set(entry.wrong)) < 2:
        yield "fewer than two wrong queries"
    for number, sql in enumerate(entry.wrong, 1):
        try:
            rows = run(file, sql)
        except sqlite3.Error as error:
            yield f"wrong query {number} fails: {error}"
            continue
        if set(rows) == set(gold):
            yield f"wrong query {number} gives gold's set of rows"
        elif Counter(rows) == Counter(gold):
            yield f"wrong query {number} gives gold's bag of rows"


def _cuts_a_tie(select: Select, file: Path) -> bool:
    """Tell whether the first row that LIMIT leaves out has the same sort key as the last one it keeps."""
    order, limit, offset = (select.args.get(part) for part in ("order", "limit", "offset"))
    if order is None or limit is None:
        return False
    named = {item.alias: item.this for item in select.selects if isinstance(item, expressions.Alias)}
    keys = [key.this for key in order.expressions]
    keys = [select.selects[int(key.name) - 1].unalias() if key.is_int else named.get(key.name, key) for key in keys]
    last = int(limit.expression.name) + (int(offset.expression.name) if offset else 0)
    wider = select.copy().select(*(key.copy() for key in keys), append=True).limit(last + 1).offset(0)
    try:
        rows = [row[-len(keys) :] for row in run(file, wider.sql(dialect="sqlite"))]
    except sqlite3.OperationalError:  # a correlated subquery cannot be run alone
        return False
    return len(rows) > last and rows[last - 1] == rows[last]


def template(sql: str) -> str:
    """A query with its literals left out, so that two questions that differ in one only look the same."""
    tree = sqlglot.parse_one(sql, dialect="sqlite")
    return tree.transform(
        lambda node: expressions.Placeholder() if isinstance(node, expressions.Literal) else node
    ).sql()


def _database_problems(
    name: str, questions: tuple[QuarryQuestion, ...], tables: dict[str, int], file: Path
) -> Iterator[str]:
    if not 4 <= len(tables) <= 9:
        yield f"{len(tables)} tables, not 4 to 9"
    if not 1_000 <= sum(tables.values()) <= 20_000:
        yield f"{sum(tables.values())} rows, not 1,000 to 20,000"
    if file.stat().st_size > 2_500_000:
        yield f"{file.stat().st_size} bytes, more than 2.5 MB"
    if (pin := quarry.pinned().get(name)) and pin != quarry.digest(file):
        yield "the built content differs from its pinned digest (after a wanted change, run the command `release`)"
    yield from (f"foreign key broken: {row}" for row in run(file, "PRAGMA foreign_key_check")[:5])
    if len(questions) != QUESTIONS:
        yield f"{len(questions)} questions, not {QUESTIONS}"
    yield from (f"{entry.id}: the id does not start with {name}-" for entry in questions if entry.database != name)
    for field, values in (
        ("id", [entry.id for entry in questions]),
        ("text", [entry.text.casefold() for entry in questions]),
    ):
        yield from (
            f"two questions have the {field} {value!r}" for value, count in Counter(values).items() if count > 1
        )
    yield from _template_problems(questions)
    tags = quarry.blueprint(name).conventions
    used = Counter(tag for entry in questions for tag in entry.conventions)
    yield from (f"convention {tag!r} is not described in CONVENTIONS" for tag in used if tag not in tags)
    yield from (
        f"convention {tag!r} is needed by {used[tag]} questions, not 3 or more" for tag in tags if used[tag] < 3
    )


def _template_problems(questions: tuple[QuarryQuestion, ...]) -> Iterator[str]:
    seen: dict[str, str] = {}
    for entry in questions:
        if (first := seen.setdefault(template(entry.sql), entry.id)) != entry.id:
            yield f"{entry.id} and {first} differ only in literals"


def _table_sizes(file: Path) -> Iterator[tuple[str, int]]:
    for (table,) in run(file, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid"):
        ((size,),) = run(file, f'SELECT count(*) FROM "{table}"')
        yield str(table), int(str(size))


# ── the datasheet ────────────────────────────────────────────────────────────────────────────────────────────────────


def render() -> str:
    """Markdown tables of what every database holds and which conventions its questions need."""
    return "\n".join(_lines([review(name) for name in names()]))


def _lines(reviews: list[Review]) -> Iterator[str]:
    levels = ", ".join(DIFFICULTIES)
    yield f"| database | domain | tables | rows | KB | questions | {levels} | hinted | hidden | empty |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    for reviewed in reviews:
        yield _row(reviewed.name, quarry.blueprint(reviewed.name).domain, [reviewed])
    yield _row("**all**", "", reviews)
    for reviewed in reviews:
        used = Counter(tag for finding in reviewed.findings for tag in finding.entry.conventions)
        yield f"\n**{reviewed.name}**\n"
        for tag, sentence in quarry.blueprint(reviewed.name).conventions.items():
            yield f"- `{tag}` ({used[tag]} questions): {sentence}"


def _row(name: str, domain: str, reviews: list[Review]) -> str:
    questions = [finding.entry for reviewed in reviews for finding in reviewed.findings]
    levels = Counter(entry.difficulty for entry in questions)
    cells = (
        name,
        domain,
        sum(len(reviewed.tables) for reviewed in reviews),
        f"{sum(sum(reviewed.tables.values()) for reviewed in reviews):,}",
        f"{sum(reviewed.bytes for reviewed in reviews) // 1000:,}",
        len(questions),
        ", ".join(str(levels[level]) for level in DIFFICULTIES),
        sum(bool(entry.evidence) for entry in questions),
        sum(bool(entry.conventions) and not entry.evidence for entry in questions),
        sum(entry.empty for entry in questions),
    )
    return "| " + " | ".join(map(str, cells)) + " |"
