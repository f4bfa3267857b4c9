"""Fit the confidence that the package ships on the served answers of finished runs: `runs/quarry=served …`.

Writes src/sqlcrystal/measurement/confidence.json, and prints how well a model fitted on other databases keeps its word.
"""

import sys
from pathlib import Path

import msgspec

from sqlcrystal.ledger.records import read_ledger
from sqlcrystal.measurement.confidence import SHIPPED, TRAITS, Example, calibration, cross_fitted, fit

SHIPPED_AT = Path(__file__).resolve().parents[1] / "src" / "sqlcrystal" / "measurement" / SHIPPED


def main(runs: list[str]) -> None:
    examples, told = [], []
    for run in runs:
        folder, _, arm = run.partition("=")
        rows = [row for row in read_ledger(Path(folder)).outcomes if (row.arm, row.setting) == (arm, "served")]
        examples += [Example(row.traits, row.right, row.database) for row in rows]
        told.append(f"{len(rows)} answers over {len({row.database for row in rows})} databases of {Path(folder).name}")
    held = calibration(cross_fitted(examples), [example.right for example in examples])
    print(
        f"{held.n} answers; over databases not fitted on: calibration error {held.error:.3f}, Brier {held.brier:.3f},"
    )
    print(f"the surest third right in {100 * held.surest_third:.1f} %")
    for part in held.bins:
        print(f"  {part.n:4} answers said {100 * part.said:5.1f} %, right {100 * part.right:5.1f} %")
    model = fit(examples, fitted_on="; ".join(told))
    for name, weight in zip(TRAITS, model.weights, strict=True):
        print(f"  {name}: {weight:+.3f}")
    SHIPPED_AT.write_bytes(msgspec.json.format(msgspec.json.encode(model)) + b"\n")


if __name__ == "__main__":
    main(sys.argv[1:])
