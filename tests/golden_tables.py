"""Writes tests/study/golden_tables.md: every table of a report from one small ledger, so that a change is seen.

After a change that is meant: `PYTHONPATH=src:tests python -m golden_tables`; read the difference before you commit it.
"""

from functools import cache
from pathlib import Path

from sqlcrystal.study.report.document import make_document
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.study.report.write import to_markdown
from synthetic_ledger import DATABASES, SEEDS, synthetic_ledger

GOLDEN = Path(__file__).parent / "study" / "golden_tables.md"
SMALL = DATABASES[:4]


@cache
def golden_tables() -> str:
    """Every table of a small study with all arms of the paper, two smaller runs beside it."""
    runs = (
        synthetic_ledger(databases=SMALL),
        synthetic_ledger(only=("none", "W0", "W3+A", "W5"), databases=SMALL, strength=0.5, model="made-up-0.5b"),
        synthetic_ledger(only=("none", "W0", "W3+A"), databases=SMALL, seeds=SEEDS[:2], benchmark="made-up-2"),
    )
    document = make_document([Facts(ledger) for ledger in runs])
    lines = ["# Made-up figures: what the report's tables look like, never a result", ""]
    lines += [to_markdown(table) for table in document.tables]
    lines += [f"Left out: {absent.title} needs {absent.needs}." for absent in document.absent]
    return "\n".join(lines)


if __name__ == "__main__":
    GOLDEN.write_text(golden_tables(), encoding="utf-8")
