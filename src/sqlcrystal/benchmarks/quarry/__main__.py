"""The authors' bench: `python -m sqlcrystal.benchmarks.quarry check [name…]`, `show name [id…]`, `release`."""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from sqlcrystal.benchmarks import quarry
from sqlcrystal.benchmarks.quarry import DIFFICULTIES, entries, names
from sqlcrystal.benchmarks.quarry.check import Review, render, review, run
from sqlcrystal.errors import UserError

COUNTED = "<!-- counted by `release` from here on -->"


def main() -> int:
    """Run one command; 1 when a check finds a problem."""
    parser = argparse.ArgumentParser(prog="python -m sqlcrystal.benchmarks.quarry", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="build databases and check every question")
    check.add_argument("names", nargs="*")
    show = commands.add_parser("show", help="print questions with their queries and rows")
    show.add_argument("name")
    show.add_argument("ids", nargs="*", help="ids or numbers; all when none is given")
    commands.add_parser("release", help="in a checkout: pin every digest and count the datasheet anew")
    arguments = parser.parse_args()
    try:
        if arguments.command == "show":
            return _show(arguments.name, arguments.ids)
        if arguments.command == "release":
            return _release()
        return _check(arguments.names or names())
    except UserError as error:
        print(error, file=sys.stderr)
        return 2


def _check(chosen: list[str] | tuple[str, ...]) -> int:
    reviews = [review(name) for name in chosen]
    for reviewed in reviews:
        _print_review(reviewed)
    questions = [finding.entry for reviewed in reviews for finding in reviewed.findings]
    levels = Counter(entry.difficulty for entry in questions)
    shares = ", ".join(f"{levels[level]} {level} ({levels[level] / len(questions):.0%})" for level in DIFFICULTIES)
    unfit = sum(bool(finding.problems) for reviewed in reviews for finding in reviewed.findings)
    print(f"all: {len(reviews)} databases, {len(questions)} questions: {shares}; {unfit} unfit")
    return 0 if all(reviewed.sound for reviewed in reviews) else 1


def _print_review(review: Review) -> None:
    questions = [finding.entry for finding in review.findings]
    for finding in review.findings:
        verdict = "; ".join(finding.problems) or "ok"
        entry = finding.entry
        tags = ",".join(entry.conventions) + (" +hint" if entry.evidence else "")
        counts = f"{finding.rows:>4} rows  {len(entry.wrong)} wrong"
        print(f"{entry.id:<14} {entry.difficulty:<12} {counts}  {tags:<44} {verdict}")
    for problem in review.problems:
        print(f"{review.name}: PROBLEM {problem}")
    tables = ", ".join(f"{table} {size}" for table, size in review.tables.items())
    contents = f"{sum(review.tables.values())} rows ({tables}), {review.bytes / 1e6:.2f} MB"
    print(f"{review.name}: {contents}, digest {review.digest[:12]}")
    print(f"{review.name}: difficulty {dict(Counter(entry.difficulty for entry in questions))}")
    print(f"{review.name}: conventions {dict(Counter(tag for entry in questions for tag in entry.conventions))}")
    hidden = sum(bool(entry.conventions) and not entry.evidence for entry in questions)
    hinted = sum(bool(entry.evidence) for entry in questions)
    print(f"{review.name}: {len(questions)} questions, {hidden} with an unhinted convention, {hinted} with evidence\n")


def _show(name: str, ids: list[str]) -> int:
    file = quarry.path(name)
    for entry in entries(name):
        if ids and entry.id not in ids and entry.id.rpartition("-")[2] not in ids:
            continue
        print(f"{entry.id} [{entry.difficulty}] {entry.text}")
        if entry.evidence:
            print(f"  evidence: {entry.evidence}")
        for label, sql in (
            ("gold", entry.sql),
            *((f"wrong {number}", sql) for number, sql in enumerate(entry.wrong, 1)),
        ):
            print(f"  {label}: {' '.join(sql.split())}")
            rows = run(file, sql)
            for row in rows[:8]:
                print(f"      {row}")
            if len(rows) > 8:
                print(f"      … {len(rows)} rows")
        print()
    return 0


def _release() -> int:
    pins = {name: quarry.digest(quarry.path(name)) for name in names()}
    Path(__file__).with_name("digests.json").write_text(json.dumps(pins, indent=2) + "\n", encoding="utf-8")
    page = Path(__file__).parents[4] / "docs" / "reference" / "quarry.md"
    written, _, _ = page.read_text(encoding="utf-8").partition(COUNTED)
    page.write_text(f"{written}{COUNTED}\n\n{render()}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
