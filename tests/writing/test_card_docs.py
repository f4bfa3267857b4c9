"""The reference on cards, sources and verification says what the code does."""

from pathlib import Path

import pytest

from sqlcrystal.admission import external, verifiers
from sqlcrystal.assembly import SOURCES, WRITERS
from sqlcrystal.writing.diff_writers import GUARDS

VERIFIERS = {
    vars(kind)["signal"]: kind
    for module in (verifiers, external)
    for kind in vars(module).values()
    if isinstance(kind, type) and hasattr(kind, "verify")
}
REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"


def first_cells(page: str) -> list[str]:
    """The code-quoted first cell of every table row of a page."""
    rows = (REFERENCE / page).read_text("utf-8").splitlines()
    return [row.split("|")[1].strip().strip("`") for row in rows if row.startswith("| `")]


@pytest.mark.parametrize(("page", "table"), [("sources.md", SOURCES), ("verification.md", VERIFIERS)])
def test_a_reference_page_lists_exactly_what_can_be_chosen(page: str, table: dict[str, object]) -> None:
    assert sorted(first_cells(page)) == sorted(table)


def test_the_page_on_cards_lists_every_format_and_every_mode_in_order() -> None:
    cells = first_cells("cards.md")
    assert cells[: len(WRITERS)] == list(WRITERS)
    assert cells[-len(GUARDS) :] == list(GUARDS)


@pytest.mark.parametrize("mode", GUARDS)
def test_the_page_on_cards_quotes_every_guard(mode: str) -> None:
    rows = (REFERENCE / "cards.md").read_text("utf-8").splitlines()
    assert any(row.startswith(f"| `{mode}` |") and row.endswith(f"| {GUARDS[mode]} |") for row in rows)
