"""Spider dev's databases taken as one: how often the narrowed schema keeps every table the gold SQL reads.

    python benchmarks/schema_narrowing.py --data path/to/spider [--width 10] [--embedder wordllama]

Two tables of one name (each of another database) are told apart by a number; nothing else says which database a table
came from. Exits 1 when fewer than 99 % of the questions keep all their tables, or more than 12 are kept on average.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

KEPT_PERCENT = 99.0
MOST_TABLES = 12.0


def main() -> int:
    """Measure, print, and say by the exit code whether both limits hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--width", type=int, default=10)
    parser.add_argument("--embedder", default="wordllama")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = measure(options)
    if options.json:
        print(json.dumps(figures, indent=2))
    else:
        print("\n".join(f"{name:<28}{value}" for name, value in figures.items()))
    return 0 if figures["kept_percent"] >= KEPT_PERCENT and figures["mean_tables"] <= MOST_TABLES else 1


def measure(options: argparse.Namespace) -> dict:
    """Every figure of the table."""
    from sqlcrystal.benchmarks.spider import load_dev
    from sqlcrystal.models.embeddings import open_embedder
    from sqlcrystal.solving.narrowing import Narrowing

    benchmark = load_dev(options.data)
    tables, merged = one_schema(benchmark)
    narrowing = Narrowing(tables, open_embedder(options.embedder))
    kept = sizes = 0
    missed = []
    started = time.perf_counter()
    for case in benchmark.cases:
        chosen = narrowing.choose(case.question, width=options.width)
        names = {table.name for table in chosen}
        sizes += len(names)
        needed = {merged[case.question.database, name] for name in tables_of(case.sql)}
        kept += needed <= names
        if not needed <= names:
            missed.append(case.question.text)
    questions = len(benchmark.cases)
    return {
        "databases": len({case.question.database for case in benchmark.cases}),
        "tables": len(tables),
        "questions": questions,
        "kept_percent": round(100 * kept / questions, 2),
        "mean_tables": round(sizes / questions, 2),
        "milliseconds": round((time.perf_counter() - started) / questions * 1000, 2),
        "missed": missed,
    }


def one_schema(benchmark: Any) -> tuple[list, dict[tuple[str, str], str]]:
    """Every table of every database, and what each is called in the one schema."""
    from msgspec.structs import replace

    from sqlcrystal.databases import open_database

    merged: dict[tuple[str, str], str] = {}
    described = []
    for name, location in sorted(benchmark.locations.items()):
        database = open_database(location, name=name)
        tables = database.tables()
        database.close()
        for table in tables:
            plain = table.name.lower()
            taken = sum(other == plain for _, other in merged)
            merged[name, plain] = f"{plain}_{taken + 1}" if taken else plain
        for table in tables:
            references = [merged[name, other.lower()] for other in table.references if (name, other.lower()) in merged]
            described.append(replace(table, name=merged[name, table.name.lower()], references=tuple(references)))
    return described, merged


def tables_of(sql: str) -> set[str]:
    """The tables a query reads."""
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(sql, read="sqlite")
    local = {query.alias.lower() for query in tree.find_all(exp.CTE)}
    return {table.name.lower() for table in tree.find_all(exp.Table)} - local


if __name__ == "__main__":
    sys.exit(main())
