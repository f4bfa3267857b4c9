"""The rows of a ledger come by the hundred thousand, and reading them takes time in proportion."""

import gc
from pathlib import Path

from sqlcrystal.ledger.records import read_ledger, write_ledger
from synthetic_ledger import synthetic_ledger


def test_rows_that_were_read_are_nothing_the_garbage_collector_walks(tmp_path: Path) -> None:
    write_ledger(synthetic_ledger(), tmp_path)
    read = read_ledger(tmp_path)
    assert read.outcomes
    assert read.cards
    assert not any(gc.is_tracked(row) for row in (*read.outcomes, *read.cards))
