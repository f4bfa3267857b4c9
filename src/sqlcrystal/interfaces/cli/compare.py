"""`sqlcrystal compare`: paired, database-clustered inference on outcomes of two arms."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlcrystal.interfaces.cli.options import Json
from sqlcrystal.interfaces.cli.output import print_json, print_table

if TYPE_CHECKING:
    from sqlcrystal.measurement.comparison import ArmFamily, Comparison


def compare(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="One CSV with columns database,question,[seed,] and one for each arm (a,b), scores from 0 to 1, blank"
            " where missing; or for each arm a file of `score --out`, a log of Inspect (.eval, .json) or the"
            " samples_….jsonl of lm-eval.",
        ),
    ],
    arms: Annotated[
        str,
        typer.Option(
            metavar="A,B,…",
            help="Which columns to compare, the baseline first.",
            show_default="a,b, or all columns of arms",
        ),
    ] = "",
    *,
    cluster: Annotated[
        str,
        typer.Option(
            metavar="FIELD",
            help="Of logs: the field of a sample that names its database.",
            show_default="database, db_id or db",
        ),
    ] = "",
    score: Annotated[str, typer.Option(metavar="NAME", help="Of logs with several scores: the one to compare.")] = "",
    method: Annotated[
        str, typer.Option(help="Interval: cr2, jackknife, or two-stage (the paper's bootstrap).")
    ] = "cr2",
    resamples: Annotated[int, typer.Option(min=100, help="Bootstrap resamples, for two-stage.")] = 10_000,
    rng_seed: Annotated[int, typer.Option(help="Seed of the resampling.")] = 0,
    json: Json = False,
) -> None:
    """Compare arms on the same questions. Prints the difference b - a, its 95 % interval, p, fixes and breaks.

    More than two arms are compared with the first as one family, with Holm's adjustment over all of them.
    """
    from sqlcrystal.measurement.comparison import compare_arms
    from sqlcrystal.measurement.outcome_files import read_arms

    named = [name.strip() for name in arms.split(",") if name.strip()]
    scores = read_arms(files, named, cluster=cluster, score=score)
    family = compare_arms(scores, method=method, resamples=resamples, rng_seed=rng_seed)
    if json:
        print_json(family.members[0].comparison if len(family.members) == 1 else family)
    elif len(family.members) == 1:
        _print_pair(family.members[0].comparison, scores.arms, files)
    else:
        _print_family(family, files)


def _print_family(family: "ArmFamily", files: list[Path]) -> None:
    print_table(
        f"{', '.join(path.name for path in files)}: each arm - {family.baseline}",
        ["arm", "%", "baseline %", "delta pp", "95 % interval", "p", "Holm p", "fixed", "broke", "pairs", "left out"],
        [
            [
                member.arm,
                member.comparison.b,
                member.comparison.a,
                f"{member.comparison.delta_pp:+.2f}",
                _interval(member.comparison.ci_low_pp, member.comparison.ci_high_pp),
                _probability(member.comparison.p_value),
                _probability(member.p_holm),
                member.comparison.fixed,
                member.comparison.broke,
                member.comparison.n,
                member.comparison.unevaluable,
            ]
            for member in family.members
        ],
    )
    typer.echo(f"one family of {len(family.members)}: Holm's adjustment over all of them; each has its own pairs")
    for member in family.members:
        for line in _lines(member.comparison):
            typer.echo(f"{member.arm}: {line}")


def _print_pair(comparison: "Comparison", arms: tuple[str, ...], files: list[Path]) -> None:
    title = f"b = {arms[1]}, a = {arms[0]}: b - a"
    if arms == ("a", "b"):
        title = f"{files[0].name}: b - a"
    print_table(
        title,
        ["a %", "b %", "delta pp", "95 % interval", "p", "fixed", "broke", "McNemar p"],
        [
            [
                comparison.a,
                comparison.b,
                f"{comparison.delta_pp:+.2f}",
                _interval(comparison.ci_low_pp, comparison.ci_high_pp),
                _probability(comparison.p_value),
                comparison.fixed,
                comparison.broke,
                _probability(comparison.mcnemar_p),
            ]
        ],
    )
    for line in _lines(comparison):
        typer.echo(line)


def _lines(comparison: "Comparison") -> list[str]:
    """Write the data that the difference rests on, and how far it can be trusted."""
    seeds = f", {comparison.n_seeds} seeds; {comparison.status}" if comparison.n_seeds else ""
    lines = [f"{comparison.n} pairs, {comparison.n_questions} questions, {comparison.n_databases} databases{seeds}"]
    if comparison.unevaluable:
        lines.append(f"left out: {comparison.unevaluable} pairs that could not be judged on both sides")
    if comparison.undefined:
        lines.append(comparison.undefined)
    else:
        freedom = f", {comparison.df:.1f} degrees of freedom" if comparison.df else ""
        lines.append(f"interval by {comparison.method}{freedom}; databases are the clusters")
    alone = comparison.question_level
    if alone and alone.p_value is not None:
        ends = _interval(alone.low, alone.high)
        lines.append(f"over questions, which says nothing of other databases: {ends}, p {_probability(alone.p_value)}")
    if comparison.n_databases > 1:
        lines.append(f"sign flips over databases, exact: p {_probability(comparison.sign_flip_p)}")
    if comparison.leave_one_out:
        left = comparison.leave_one_out
        lines.append(
            f"without one database: from {left.low_pp:+.2f} (without {left.without_for_low})"
            f" to {left.high_pp:+.2f} (without {left.without_for_high})"
        )
    if comparison.new_database_pp and comparison.between_sd_pp is not None:
        lines.append(
            f"between databases: standard deviation {comparison.between_sd_pp:.2f} pp;"
            f" a new one may expect {_interval(*comparison.new_database_pp)}"
        )
    if comparison.macro_ci_pp:
        lines.append(
            f"mean over databases, each counting once: {_signed(comparison.macro_pp)}"
            f" {_interval(*comparison.macro_ci_pp)}"
        )
    if comparison.uneven:
        lines.append(comparison.uneven)
    if comparison.detectable_pp and comparison.detectable_ci_pp:
        low, high = comparison.detectable_ci_pp
        lines.append(
            f"data like these detect a difference of {comparison.detectable_pp:.2f} pp with 80 % power"
            f" (95 % interval {low:.2f} to {high:.2f})"
        )
    elif comparison.detectable_ci_pp:
        lines.append("data like these detect no difference, however large, with 80 % power")
    return lines


def _signed(value: float | None) -> str:
    """Write a difference with its sign, and none before a zero that is none but for rounding."""
    return "none" if value is None else f"{round(value, 2) + 0.0:+.2f}"


def _interval(low: float | None, high: float | None) -> str:
    return "none" if low is None or high is None else f"[{low:+.2f}, {high:+.2f}]"


def _probability(value: float | None) -> str:
    return "none" if value is None else f"{value:.4f}" if value >= 0.0001 else "<0.0001"


def register(app: typer.Typer) -> None:
    """Attach the command."""
    app.command("compare")(compare)
