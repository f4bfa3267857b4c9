"""Every table stays as it is until somebody means to change it."""

from golden_tables import GOLDEN, golden_tables


def test_every_table_is_the_golden_one() -> None:
    assert golden_tables().splitlines() == GOLDEN.read_text(encoding="utf-8").splitlines(), (
        "a table changed; if that is meant: PYTHONPATH=src:tests python -m golden_tables"
    )
