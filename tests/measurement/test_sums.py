"""Inference from sums that an engine made is the inference on the pairs themselves."""

from pathlib import Path

import numpy as np
import pytest

from sqlcrystal.ledger.folder import write_results
from sqlcrystal.measurement.outcomes import paired
from sqlcrystal.measurement.statistics import difference, difference_of_sums
from synthetic_ledger import synthetic_ledger

COOKBOOK = Path(__file__).resolve().parents[2] / "docs" / "cookbook" / "internet-scale.md"


def test_the_cookbooks_query_over_a_runs_parquet_file_gives_what_compare_gives(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    ledger = synthetic_ledger(only=("none", "W0"))
    write_results(ledger, tmp_path)
    query = COOKBOOK.read_text(encoding="utf-8").split('"""')[1].replace("runs/*/", f"{tmp_path}/")
    with duckdb.connect() as engine:
        sums = engine.execute(query).fetchnumpy()
    before = {(row.seed, row.question): row.right for row in ledger.of("none", "transfer")}
    rows = [
        (row.database, row.question, str(row.seed), int(before[row.seed, row.question]), int(row.right))
        for row in ledger.of("W0", "transfer")
    ]
    known = difference(outcomes=paired(rows), rng=np.random.default_rng(0))
    estimate = difference_of_sums(sums=sums["difference"], sizes=sums["pairs"])
    for name in ("value", "low", "high", "p_value", "df", "n_databases"):
        assert getattr(estimate, name) == pytest.approx(getattr(known, name)), name


def test_two_databases_give_no_interval_from_sums_either() -> None:
    estimate = difference_of_sums(sums=np.array([100.0, 300.0]), sizes=np.array([20.0, 20.0]))
    assert (estimate.low, estimate.p_value) == (None, None)
    assert "two databases" in estimate.undefined
