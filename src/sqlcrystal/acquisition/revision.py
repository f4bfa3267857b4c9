"""T2, T3 and T3-look: revise on one bit, on what probes reveal, or after a look; T3-near and T2-near: spell first."""

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import ClassVar, NamedTuple, Self

from msgspec.structs import replace
from sqlglot import exp

from sqlcrystal.acquisition.repair import (
    FirstTry,
    NamedSource,
    Repair,
    clip,
    greedy,
    previous_sql,
)
from sqlcrystal.databases.engines import title_of
from sqlcrystal.databases.layout import Layout, homes_of, join_path, keys_of, layout_of, owner_of, read_around
from sqlcrystal.databases.parsing import Unparsable, grammar, parse, written
from sqlcrystal.databases.spelling import misspelt, respelled
from sqlcrystal.protocols import Check, Database, LanguageModel
from sqlcrystal.solving.prompt import render_execution, render_question, render_schema
from sqlcrystal.solving.solver import extract_blocks, extract_sql, same_words
from sqlcrystal.types import (
    Attempt,
    Call,
    Cell,
    Effort,
    Episode,
    Execution,
    Failure,
    Message,
    Probe,
    Question,
    Round,
    Rows,
)

# ── T2: one bit ───────────────────────────────────────────────────────────────────────────────────────────────────────

ONE_BIT_SYSTEM = "You are correcting a {dialect} query. Output ONE corrected query."
FEEDBACK = "The previous SQL did not answer the question correctly. Please revise it."
CLOSING = "Write the corrected {dialect} query now, inside a ```sql block."


class OneBit(Repair):
    """Revises the last candidate; learns nothing but that it was wrong."""

    name: ClassVar[str] = "T2"
    summary: ClassVar[str] = "retries on one bit"
    ends_on_repeat: ClassVar[bool] = True

    def propose(self, attempt: Attempt, past: Sequence[Round]) -> Round:
        """Revise the previous candidate once."""
        messages = revise_prompt(
            schema=self.database.schema(),
            dialect=self.database.dialect,
            question=attempt.question,
            previous=previous_sql(attempt, past),
        )
        call = self.ask("revise", messages, greedy(attempt))
        sql = extract_sql(call.completion.text)
        return Round(calls=(call,), sql=sql, execution=clip(self.run(sql)))


def revise_prompt(*, schema: str, dialect: str, question: Question, previous: str | None) -> tuple[Message, Message]:
    """Write the paper's one-bit REVISE prompt."""
    name = title_of(dialect)
    user = "\n".join(
        [
            render_schema(schema),
            render_question(question),
            render_previous(previous),
            FEEDBACK,
            CLOSING.format(dialect=name),
        ]
    )
    return Message("system", ONE_BIT_SYSTEM.format(dialect=name)), Message("user", user)


def render_previous(sql: str | None) -> str:
    """Write the previous candidate's section."""
    return "[Previous SQL]\n" + (f"```sql\n{sql}\n```" if sql else "(the reply held no SQL)")


# ── looking at the database: probes under the guard, with short caps, reported in few lines ───────────────────────────

MOST_PROBES = 4
SECONDS = 5.0
SHOWN_ROWS = 10
SHOWN_CELL = 40
PLAIN_LOOK = re.compile(r"SELECT DISTINCT (?P<column>\S+) FROM (?P<table>\S+)")


def look(database: Database, reply: str) -> tuple[Probe, ...]:
    """Run the probes a reply proposes: at most four."""
    return run_probes(database, extract_blocks(reply)[:MOST_PROBES])


def run_probes(database: Database, queries: Sequence[str]) -> tuple[Probe, ...]:
    """Run probes, each for at most five seconds and one row more than is shown."""
    return tuple(
        Probe(sql, database.execute(cap(sql, database.dialect), timeout=SECONDS, max_rows=SHOWN_ROWS + 1))
        for sql in queries
    )


def report(probes: Sequence[Probe]) -> list[str]:
    """Write a line for each probe; one row beyond the cap only says that there are more."""
    return [_shown(probe) for probe in probes] or ["(no probe could be read from the reply)"]


def cap(sql: str, dialect: str) -> str:
    """Add a LIMIT to the probe that keeps the database from sending more than is shown."""
    try:
        query = parse(sql, dialect)
    except Unparsable:
        return sql  # the engine's own message says more than ours would
    if not isinstance(query, exp.Query):
        return sql
    limit = query.args.get("limit")
    if limit is None:
        return f"{sql}\nLIMIT {SHOWN_ROWS + 1}"
    value = limit.expression if isinstance(limit, exp.Limit) else None
    if isinstance(value, exp.Literal) and value.is_int and int(value.this) > SHOWN_ROWS:
        try:
            return written(query.limit(SHOWN_ROWS + 1), dialect)
        except Unparsable:
            return sql
    return sql


def _shown(probe: Probe) -> str:
    execution, query = probe.execution, " ".join(probe.sql.split())
    if isinstance(execution, Rows) and execution.rows and len(execution.columns) == 1:
        values = [_quoted(row[0]) for row in execution.rows[:SHOWN_ROWS]]
        listed = ", ".join([*values, *(["..."] if len(execution.rows) > SHOWN_ROWS else [])])
        plain = PLAIN_LOOK.fullmatch(query)
        return f"{plain['table']}.{plain['column']} holds {listed}." if plain else f"{query} -> {listed}"
    text = render_execution(execution, rows=SHOWN_ROWS, cell=SHOWN_CELL)
    more = isinstance(execution, Rows) and len(execution.rows) > SHOWN_ROWS
    return f"{query}\n{text.rpartition(chr(10))[0] + chr(10) + '...' if more else text}"


def _quoted(cell: Cell) -> str:
    """Write a value as SQL would, so that an empty string can be told from NULL and '7' from 7."""
    if isinstance(cell, str):
        return f"'{cell if len(cell) <= SHOWN_CELL else cell[: SHOWN_CELL - 1] + '…'}'"
    return "NULL" if cell is None else str(cell)


# ── suspects: columns whose values should be looked at, and columns that stand elsewhere ──────────────────────────────

MOST_SUSPECTS = 4
MOST_NEAR = 3


class Suspects(NamedTuple):
    """Probes that would show what the columns hold, and a sentence for each column the query looks for in vain."""

    probes: tuple[str, ...] = ()
    misplaced: tuple[str, ...] = ()


def suspects(sql: str | None, schema: str, dialect: str) -> Suspects:
    """Find the columns that a query compares with a value, calculates with or sorts by, filters first."""
    try:
        query = parse(sql or "", dialect)
    except Unparsable:
        return Suspects()
    layout = layout_of(schema, dialect)
    probes = [
        exp.select(exp.to_identifier(column.name)).distinct().from_(exp.to_identifier(owner)).sql(grammar(dialect))
        for column in _leant_on(query)
        if (owner := owner_of(column, layout) or next(iter(homes_of(column, layout)), None))
    ]
    sentences = dict.fromkeys(_misplaced(query, schema, dialect))
    return Suspects(tuple(dict.fromkeys(probes))[:MOST_SUSPECTS], tuple(sentences))


def _misplaced(query: exp.Expr, schema: str, dialect: str) -> Iterator[str]:
    """Tell where each column that no table in its reach has stands and how to join that, or which names are near."""
    layout = layout_of(schema, dialect)
    named_here = {alias.alias.lower() for alias in query.find_all(exp.Alias)}
    for column in query.find_all(exp.Column):
        reach = read_around(column)
        readable = reach is not None and bool(reach) and all(table in layout for table in reach)
        if not readable or reach is None or owner_of(column, layout) or isinstance(column.this, exp.Star):
            continue
        if homes := homes_of(column, layout):
            owners, way = ", ".join(homes), _way(query, homes, schema, dialect)
            yield f"{column.name} is a column of {owners}, not of {' or '.join(reach)}{way}."
        elif not column.this.quoted and column.name.lower() not in named_here:  # in quotes SQLite takes it as a text
            yield f"No table has a column {column.name}{_near(column.name, layout)}."


def _way(query: exp.Expr, homes: list[str], schema: str, dialect: str) -> str:
    """Name the keys that join the nearest table with the column to those that are read, if it is not among them."""
    read = list(dict.fromkeys(table.name.lower() for table in query.find_all(exp.Table)))
    if any(home in read for home in homes):
        return ""
    paths = [path for home in homes if (path := join_path(read, home, keys_of(schema, dialect)))]
    shortest = sorted(paths, key=len)[:1]
    return "".join(": join it ON " + " AND ".join(map(str, path)) for path in shortest)


def _near(name: str, layout: Layout) -> str:
    """Find the columns whose names are most like this one."""
    by_column: dict[str, list[str]] = {}
    for table, columns in layout.items():
        for column in columns:
            by_column.setdefault(column, []).append(f"{table}.{column}")
    near = [place for match in get_close_matches(name.lower(), by_column, n=MOST_NEAR) for place in by_column[match]]
    return f"; there is {', '.join(near[:MOST_NEAR])}" if near else ""


def _leant_on(query: exp.Expr) -> Iterator[exp.Column]:
    """Find columns beside a literal, then those calculated with or sorted by; join keys and counts are no suspects."""
    for predicate in query.find_all(exp.Predicate):
        if any(_beside(predicate, value) for value in predicate.find_all(exp.Literal, exp.Null)):
            yield from (column for column in predicate.find_all(exp.Column) if _beside(predicate, column))
    for node in query.find_all(exp.AggFunc, exp.Ordered, exp.Binary):
        if not isinstance(node, exp.Predicate | exp.Connector | exp.Count):
            yield from node.find_all(exp.Column)


def _beside(predicate: exp.Expr, node: exp.Expr) -> bool:
    """Tell whether the node belongs to this comparison and not to one inside a subquery of it."""
    return node.find_ancestor(exp.Predicate) is predicate


# ── T3 and T3-look: probes ────────────────────────────────────────────────────────────────────────────────────────────

PROBE_SYSTEM = (
    "You are debugging a {dialect} query judged INCORRECT. "
    "You do NOT have the correct answer -- only that your query is wrong. "
    "Diagnose by interrogating the DB with small READ-ONLY probe queries."
)
PROBE_CLOSING = (
    "Propose 1-4 READ-ONLY {dialect} probe queries that would reveal your mistake, such as the DISTINCT values of a "
    "column you filter on or a few rows of a table you read. "
    "Output EACH probe in its own ```sql block. Do not write the final answer yet."
)
REVISE_SYSTEM = (
    "You are correcting a {dialect} query. Use what the DB probes revealed to fix the specific mistake. "
    "You still cannot see the correct answer. Output ONE corrected query."
)


class Probing(Repair):
    """Two calls a round: propose one to four probes, then revise with its SQL, its result and all reports in view."""

    name: ClassVar[str] = "T3"
    summary: ClassVar[str] = "repair with the model's own probes, the paper's procedure"

    def propose(self, attempt: Attempt, past: Sequence[Round]) -> Round:
        """Ask for probes, run them, ask for the revision."""
        previous = previous_sql(attempt, past)
        situation = self.describe(attempt, previous, self.run(previous))
        asked = self.ask("probe", self.prompt(PROBE_SYSTEM, situation, PROBE_CLOSING), greedy(attempt))
        probes = look(self.database, asked.completion.text)
        facts = render_facts(report([*(probe for spent in past for probe in spent.probes), *probes]))
        revised = self.ask("revise", self.prompt(REVISE_SYSTEM, situation, facts, CLOSING), greedy(attempt))
        sql = extract_sql(revised.completion.text)
        return Round(calls=(asked, revised), sql=sql, execution=clip(self.run(sql)), probes=probes)

    def calls_in(self, rounds: float) -> float:
        """Count probes and revision, each a call."""
        return 2 * rounds

    def describe(self, attempt: Attempt, previous: str | None, execution: Execution | None) -> str:
        """Write for both calls: schema, question, previous SQL and its result."""
        sections = [render_schema(self.database.schema()), render_question(attempt.question), render_previous(previous)]
        if execution is not None:
            sections.append(f"[What it returned]\n{render_execution(execution, rows=SHOWN_ROWS, cell=SHOWN_CELL)}")
        return "\n".join(sections)

    def prompt(self, system: str, *sections: str) -> tuple[Message, Message]:
        """Write a system prompt and sections in the database's dialect; the sections before the last are verbatim."""
        name = title_of(self.database.dialect)
        *opening, closing = sections
        user = "\n".join([*opening, closing.format(dialect=name)])
        return Message("system", system.format(dialect=name)), Message("user", user)


def render_facts(facts: Sequence[str]) -> str:
    """Write the section with what the probes revealed."""
    return "\n".join(["[Database probes and what they revealed]", *(f"- {fact}" for fact in facts)])


PROBE_TOKENS = 96
REVISE_CLOSING = "Use the values as they are stored. " + CLOSING


class LookFirst(Probing):
    """One call in the first round; then two: propose one to four probes, revise with all reports so far.

    Our form of T3 for small models. The first round looks up what the columns of the wrong query really hold, which
    needs no call: a small model's own probes often repeat its query, so they are asked for from the second round on.
    The revision is shown what was learnt, not the wrong query: a small model copies whatever SQL it is shown.
    """

    name: ClassVar[str] = "T3-look"
    summary: ClassVar[str] = "repair with probes made for the model, our form of T3 for small models"
    ends_on_repeat: ClassVar[bool] = True

    def propose(self, attempt: Attempt, past: Sequence[Round]) -> Round:
        """Look, then write the query anew."""
        previous, schema = previous_sql(attempt, past), self.database.schema()
        returned = self.run(previous)
        suspected = suspects(previous, schema, self.database.dialect)
        probes = list(run_probes(self.database, suspected.probes))
        calls = []
        if past or not probes:
            calls.append(self.ask_for_probes(attempt, previous, returned))
            own = look(self.database, calls[0].completion.text)
            probes.extend(probe for probe in own if not same_words(probe.sql, previous))
        by_sql = {probe.sql: probe for probe in (*(probe for spent in past for probe in spent.probes), *probes)}
        facts = [
            *render_failure(returned),
            *suspected.misplaced,
            *self.remarks(previous),
            *report(tuple(by_sql.values())),
        ]
        sections = (render_schema(schema), render_facts(facts), render_question(attempt.question), REVISE_CLOSING)
        calls.append(self.ask("revise", self.prompt(REVISE_SYSTEM, *sections), greedy(attempt)))
        sql = extract_sql(calls[-1].completion.text)
        return Round(calls=tuple(calls), sql=sql, execution=clip(self.run(sql)), probes=tuple(probes))

    def remarks(self, previous: str | None) -> Iterator[str]:  # noqa: ARG002
        """Write nothing beyond what misplaced columns and probes tell; a form of T3-look may know more."""
        yield from ()

    def calls_in(self, rounds: float) -> float:
        """Count two a round but for the first, which mostly needs no call for probes."""
        return max(2 * rounds - 1, 0.0)

    def ask_for_probes(self, attempt: Attempt, previous: str | None, returned: Execution | None) -> Call:
        """Ask for the model's own probes, in few tokens: a small model's long list repeats itself."""
        sampling = greedy(attempt)
        short = replace(sampling, max_tokens=min(PROBE_TOKENS, sampling.max_tokens))
        situation = self.describe(attempt, previous, returned)
        return self.ask("probe", self.prompt(PROBE_SYSTEM, situation, PROBE_CLOSING), short)


def render_failure(execution: Execution | None) -> list[str]:
    """Write why the previous query did not run, if it did not."""
    return [f"A query failed: {execution.message}"] if isinstance(execution, Failure) else []


class Union(NamedSource):
    """Keeps first-try successes, and repairs the rest; each episode names the source it came from."""

    name: ClassVar[str] = "union"
    summary: ClassVar[str] = "repairs and first-try successes"
    repairs_by: ClassVar[type[Repair]] = Probing
    """The source of its repairs, where it is made by name."""

    def __init__(self, repair: Repair) -> None:
        self.first = FirstTry()
        self.rest = repair

    @classmethod
    def of(cls, model: LanguageModel, database: Database, *, budget: int) -> Self:
        """Make the source around the one that repairs."""
        return cls(cls.repairs_by.of(model, database, budget=budget))

    def acquire(self, attempt: Attempt, *, right: bool, accept: Check) -> Effort:
        """Keep the success, or else repair."""
        return (self.first if right else self.rest).acquire(attempt, right=right, accept=accept)

    def calls_in(self, rounds: float) -> float:
        """Count what the repair takes."""
        return self.rest.calls_in(rounds)


class UnionLook(Union):
    """Keeps first-try successes, and repairs the rest by T3-look."""

    name: ClassVar[str] = "union-look"
    summary: ClassVar[str] = f"{LookFirst.name} repairs and first-try successes"
    repairs_by: ClassVar[type[Repair]] = LookFirst


# ── values as they are stored ─────────────────────────────────────────────────────────────────────────────────────────


class LookNear(LookFirst):
    """Tells the model, beside what T3-look tells, which stored value is near a literal that its column never holds."""

    name: ClassVar[str] = "T3-look, told near values"

    def remarks(self, previous: str | None) -> Iterator[str]:
        """Write a sentence for each misspelt value."""
        return misspelt(previous, self.database)


class SpelledThenLook(NamedSource):
    """Exchanges misspelt values for stored ones; where that is not enough, asks the model to repair."""

    name: ClassVar[str] = "T3-near"
    summary: ClassVar[str] = "stored spellings, then repair by T3-look told of near values"
    repairs_by: ClassVar[type[Repair]] = LookNear

    def __init__(self, repair: Repair) -> None:
        self.rest = repair

    @classmethod
    def of(cls, model: LanguageModel, database: Database, *, budget: int) -> Self:
        """Make the source around the one that asks the model."""
        return cls(cls.repairs_by.of(model, database, budget=budget))

    def acquire(self, attempt: Attempt, *, right: bool, accept: Check) -> Effort:
        """Take the respelled query if the check accepts it; a round of it has no call."""
        found = None if right else respelled(attempt.sql, self.rest.database)
        if found is None or not accept(found.sql):
            return self.rest.acquire(attempt, right=right, accept=accept)
        execution = clip(self.rest.run(found.sql))
        rounds = (Round(calls=(), sql=found.sql, execution=execution, accepted=True),)
        episode = Episode(attempt=attempt, source=self.name, sql=found.sql, rounds=rounds)
        return Effort(attempt=attempt, source=self.name, rounds=rounds, episode=episode)

    def calls_in(self, rounds: float) -> float:
        """Count what the repair takes."""
        return self.rest.calls_in(rounds)


class SpelledThenOneBit(SpelledThenLook):
    """Does the same where the model may see no value: it is told nothing but that its query was wrong."""

    name: ClassVar[str] = "T2-near"
    summary: ClassVar[str] = "stored spellings, then repair on one bit"
    repairs_by: ClassVar[type[Repair]] = OneBit
