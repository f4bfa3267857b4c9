"""Runs one engine's part of the corpus in a process of its own and prints what happened, memory included, as JSON."""

import json
import re
import sys
import tomllib
from pathlib import Path

from memory import peak_megabytes, peak_megabytes_of_children
from sqlcrystal.databases import open_database
from sqlcrystal.types import Failure

CORPUS = Path(__file__).with_name("attacks.toml")
EVIL = "/tmp/sqlcrystal-evil"  # where the corpus writes to
GUARDED = frozenset({"endings", "variants"})  # which the guard alone answers for
TIMEOUT = 1.0
MAX_ROWS = 1000


def statements(engine: str, evil: str = EVIL) -> list[tuple[str, str]]:
    """The corpus of one engine as (family, statement), writing to the given path."""
    families = tomllib.loads(CORPUS.read_text(encoding="utf-8"))[engine]
    return [
        (family, _unfolded(line).replace(EVIL, evil))
        for family, lines in families.items()
        for line in lines.strip().splitlines()
    ]


def _unfolded(line: str) -> str:
    """The statement that a line stands for."""
    plain = line.replace("⏎", "\n").replace("⍽", "\u00a0").replace("␀", "\x00")
    return re.sub(r"<U\+([0-9A-F]+)>", lambda match: chr(int(match[1], 16)), plain)


def main(engine: str, url: str, lock: str, evil: str) -> None:
    """Attack behind both locks, or behind the engine's alone."""
    database = open_database(url, inspect=False, allow_privileged=True)
    outcomes = []
    for family, sql in statements(engine, evil):
        if lock == "engine" and family in GUARDED:
            continue
        if lock == "both":
            result = database.execute(sql, timeout=TIMEOUT, max_rows=MAX_ROWS)
        else:
            result = database._run(sql, TIMEOUT, MAX_ROWS)  # type: ignore[attr-defined]
        outcomes.append(
            {
                "family": family,
                "sql": sql,
                "kind": result.kind if isinstance(result, Failure) else "rows",
                "message": result.message if isinstance(result, Failure) else str(result.rows[:2])[:200],
                "seconds": result.seconds,
            }
        )
    database.close()
    print(json.dumps({"outcomes": outcomes, "megabytes": [peak_megabytes(), peak_megabytes_of_children()]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
