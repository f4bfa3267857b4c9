"""`sqlcrystal compare`: paired, database-clustered inference on a CSV of outcomes."""

from pathlib import Path
from typing import Annotated

import typer

from sqlcrystal.interfaces.cli.output import print_json, print_table


def compare(
    pairs: Annotated[Path, typer.Argument(help="CSV with columns database,question,seed,a,b; a and b are 0 or 1.")],
    method: Annotated[
        str, typer.Option(help="Interval: jackknife (nominal coverage) or two-stage (the paper's).")
    ] = "jackknife",
    resamples: Annotated[int, typer.Option(min=100, help="Bootstrap resamples, for two-stage.")] = 10_000,
    rng_seed: Annotated[int, typer.Option(help="Seed of the resampling.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Compare two arms on the same questions: difference b - a, 95 % interval, p, fixes and breaks."""
    from sqlcrystal.measurement.comparison import compare as compare_outcomes
    from sqlcrystal.measurement.outcomes import read_pairs

    found = compare_outcomes(read_pairs(pairs), method=method, resamples=resamples, rng_seed=rng_seed)
    if json:
        print_json(found)
        return
    print_table(
        f"{pairs.name}: b - a",
        ["a %", "b %", "delta pp", "95 % interval", "p", "fixed", "broke", "McNemar p"],
        [
            [
                found.a,
                found.b,
                f"{found.delta_pp:+.2f}",
                f"[{found.ci_low_pp:+.2f}, {found.ci_high_pp:+.2f}]",
                f"{found.p_value:.4f}",
                found.fixed,
                found.broke,
                f"{found.mcnemar_p:.4f}",
            ]
        ],
    )
    print(
        f"{found.n} pairs, {found.n_questions} questions, {found.n_databases} databases, {found.n_seeds} seeds; "
        f"interval by {found.method}; {found.status}"
    )


def register(app: typer.Typer) -> None:
    """Attach the command."""
    app.command("compare")(compare)
