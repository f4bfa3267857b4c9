"""Looking at the database: probes from a reply, run under the guard with short caps, reported in few lines."""

import re
from collections.abc import Sequence

from sqlglot import exp

from sqlcrystal.databases.parsing import Unparsable, parse, written
from sqlcrystal.protocols import Database
from sqlcrystal.solving.extract import extract_blocks
from sqlcrystal.solving.prompt import render_execution
from sqlcrystal.types import Cell, Probe, Rows

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
    """What each probe showed; one row beyond the cap only says that there are more."""
    return [_shown(probe) for probe in probes] or ["(no probe could be read from the reply)"]


def cap(sql: str, dialect: str) -> str:
    """The probe with a LIMIT that keeps the database from sending more than is shown."""
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
    """A value as SQL would write it, so that an empty string can be told from NULL and '7' from 7."""
    if isinstance(cell, str):
        return f"'{cell if len(cell) <= SHOWN_CELL else cell[: SHOWN_CELL - 1] + '…'}'"
    return "NULL" if cell is None else str(cell)
