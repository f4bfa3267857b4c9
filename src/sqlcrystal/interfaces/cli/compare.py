"""`sqlcrystal compare|power`: paired, clustered inference on outcomes, and a study's power before it is run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlcrystal.errors import ConfigError
from sqlcrystal.interfaces.cli.options import Json
from sqlcrystal.interfaces.cli.output import print_json, print_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from sqlcrystal.measurement.comparison import ArmFamily, Comparison
    from sqlcrystal.measurement.power import CallProfile, Curve, ExpectedInterval, Prospect
    from sqlcrystal.measurement.simulation import Truth
    from sqlcrystal.study.report.drawing import Figure


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
    lines += _between_databases(comparison)
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


def _between_databases(comparison: "Comparison") -> list[str]:
    """Write how the difference varies from database to database."""
    lines = []
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
    return lines


def _signed(value: float | None) -> str:
    """Write a difference with its sign, and none before a zero that is none but for rounding."""
    return "none" if value is None else f"{round(value, 2) + 0.0:+.2f}"


def _interval(low: float | None, high: float | None) -> str:
    return "none" if low is None or high is None else f"[{low:+.2f}, {high:+.2f}]"


def _probability(value: float | None) -> str:
    return "none" if value is None else f"{value:.4f}" if value >= 0.0001 else "<0.0001"


def register(app: typer.Typer) -> None:
    """Attach the commands."""
    app.command("compare")(compare)
    app.command("power")(power)


TICKS = tuple(digit * 10.0**power for power in range(-3, 7) for digit in (1, 2, 5))


def power(
    truth: Annotated[
        str,
        typer.Option(
            "--truth", metavar="paper|DIR", help="What to plan by: the paper's databases, or a pilot's folder."
        ),
    ] = "paper",
    contrast: Annotated[
        str,
        typer.Option(
            "--contrast",
            metavar="A,B",
            help="Plan for B - A, two arms of the pilot (ARM or ARM/SETTING).",
            show_default="memory against none",
        ),
    ] = "",
    *,
    family: Annotated[
        int | None,
        typer.Option(
            min=1, help="Contrasts that Holm's adjustment runs over.", show_default="the pilot's family, else 1"
        ),
    ] = None,
    effect: Annotated[
        float | None, typer.Option("--effect", metavar="PP", help="True lift in points.", show_default="the truth's")
    ] = None,
    spread: Annotated[
        float | None,
        typer.Option(
            "--spread",
            min=0,
            metavar="PP",
            help="Standard deviation of the lift between databases.",
            show_default="the truth's, without its sampling noise",
        ),
    ] = None,
    databases: Annotated[int | None, typer.Option(min=3, help="Databases.", show_default="the truth's")] = None,
    questions: Annotated[
        int | None, typer.Option(min=4, help="Questions of each database.", show_default="sizes as the truth has them")
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds.", show_default="the truth's")] = None,
    folds: Annotated[
        int, typer.Option(min=0, help="Hold every question out once, in so many folds, in place of seeds.")
    ] = 0,
    held_out: Annotated[
        float | None, typer.Option(min=0.01, max=0.99, help="Share held out.", show_default="the truth's")
    ] = None,
    wanted: Annotated[float, typer.Option("--power", min=0.05, max=0.999, help="The power wanted.")] = 0.8,
    arms: Annotated[int, typer.Option(min=1, help="Memory arms on held-out questions, for the cost.")] = 1,
    seconds_per_call: Annotated[
        float | None, typer.Option(min=0, help="How long a call takes.", show_default="as the pilot measured")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Calls in flight.")] = 1,
    studies: Annotated[int, typer.Option(min=50, help="Simulated studies.")] = 1000,
    rng_seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Write power.json and its figure.")] = None,
    json: Json = False,
) -> None:
    """Say how large a study must be.

    Prints power, detectable lift, the intervals to expect, calls, tokens and hours.
    """
    import msgspec
    import numpy as np

    from sqlcrystal.config.study import FEWEST_FOLDS
    from sqlcrystal.measurement.power import PlannedStudy, prospect
    from sqlcrystal.measurement.simulation import without_noise

    if folds and (folds < FEWEST_FOLDS or seeds or held_out):
        raise ConfigError(f"--folds: {FEWEST_FOLDS} or more, and neither --seeds nor --held-out beside it")
    planned_by, calls, others = _known(truth, contrast)
    if seconds_per_call is not None:
        calls = msgspec.structs.replace(calls, seconds_per_call=seconds_per_call)
    design = PlannedStudy(
        databases=databases or len(planned_by.databases),
        questions=questions,
        seeds=1 if folds else seeds or planned_by.seeds,
        held_out=1.0 if folds else held_out or planned_by.held_out,
        folds=folds,
        family=family or others,
        lift_pp=100 * planned_by.lift if effect is None else effect,
        spread_pp=100 * without_noise(planned_by)[1] if spread is None else spread,
    )
    if design.databases < 3:
        raise ConfigError(
            f"--databases: the pilot has {design.databases}; clustered inference needs 3 or more, so say how many"
        )
    rng = np.random.default_rng(rng_seed)
    foreseen = prospect(planned_by, calls, design, studies=studies, rng=rng, power=wanted, arms=arms, jobs=jobs)
    if out is not None:
        _write_prospect(out, foreseen)
    if json:
        print_json(foreseen)
    else:
        _print_prospect(foreseen)


def _known(truth: str, contrast: str) -> "tuple[Truth, CallProfile, int]":
    """Tell what to plan by, the paper or a pilot, how many calls its work took, and the contrast's family."""
    from sqlcrystal.planning.power import PUBLISHED_CALLS, pilot_calls, pilot_family, pilot_truth, published_truth

    if truth == "paper":
        if contrast:
            raise ConfigError("--contrast: the paper's table has memory against none alone; name a pilot's --truth DIR")
        return published_truth(), PUBLISHED_CALLS, 1
    folder = Path(truth)
    if not folder.is_dir():
        raise ConfigError(f"--truth: {truth!r} is neither 'paper' nor the folder of a run")
    return pilot_truth(folder, contrast), pilot_calls(folder), pilot_family(folder, contrast) if contrast else 1


def _write_prospect(out: Path, foreseen: "Prospect") -> None:
    import msgspec

    from sqlcrystal.study.report.drawing import files

    out.mkdir(parents=True, exist_ok=True)
    (out / "power.json").write_bytes(msgspec.json.format(msgspec.json.encode(foreseen), indent=2))
    for kind, drawn in files(_figure(foreseen)).items():
        (out / f"power.{kind}").write_bytes(drawn)


def _print_prospect(foreseen: "Prospect") -> None:
    forecast, design = foreseen.forecast, foreseen.forecast.design
    sizes = f"{design.questions} questions each" if design.questions else f"{forecast.n_questions:,} questions"
    splits = f"{design.seeds} seeds, {100 * design.held_out:.0f} % held out"
    title = (
        f"{design.databases:,} databases, {sizes}, {f'{design.folds} folds' if design.folds else splits}:"
        f" {forecast.n_pairs:,} pairs; planned by {foreseen.truth}"
    )
    print_table(title, ["", ""], [*_answers(foreseen), *_sizes(foreseen), *_costs(foreseen)])


def _answers(foreseen: "Prospect") -> list[tuple[str, str]]:
    """List what the design can tell."""
    forecast = foreseen.forecast
    rows = [
        (
            "true lift assumed",
            f"{forecast.design.lift_pp:+.2f} pp, SD {forecast.design.spread_pp:.2f} pp between databases",
        ),
        ("power", f"{100 * forecast.power:.0f} % to tell it from zero{_within(forecast.design.family)}"),
        (
            "detectable with 80 % power",
            "none: no lift there can be" if forecast.detectable_pp is None else f"{forecast.detectable_pp:.3g} pp",
        ),
        ("standard error", f"{forecast.standard_error_pp:.3g} pp, {forecast.df:,.1f} degrees of freedom"),
    ]
    if not foreseen.expected:
        rows.append(("95 % interval to expect", f"{_ends(forecast.interval_pp, 3)}; too large to simulate"))
    rows += [
        (
            f"95 % interval to expect, {expected.method}",
            f"{_expected(expected)}; unadjusted, it"
            f" excludes zero in {100 * expected.told_from_zero:.0f} % of {expected.studies:,} simulated studies",
        )
        for expected in foreseen.expected
    ]
    if foreseen.ratio and foreseen.ratio.ratio is not None:
        ends = _ends(foreseen.ratio.interval, 0) if foreseen.ratio.interval else "none"
        rows.append(
            (
                "CR to expect",
                f"{foreseen.ratio.ratio:.0f} %, interval {ends}; unbounded in {100 * foreseen.ratio.unbounded:.0f} %",
            )
        )
    return rows


def _within(family: int) -> str:
    """Name the family that a power holds in."""
    return f", at {5 / family:.2g} %: Holm's first step over {family} contrasts" if family > 1 else ""


def _expected(expected: "ExpectedInterval") -> str:
    if expected.interval_pp is None or expected.width_pp is None:
        return "none: no simulated study has one"
    return f"{_ends(expected.interval_pp)}, {expected.width_pp:.1f} pp wide"


def _sizes(foreseen: "Prospect") -> list[tuple[str, str]]:
    """List the sizes that the lift needs."""
    again = "draws of the folds" if foreseen.forecast.design.folds else "seeds"
    names = {"databases": "databases", "questions": "questions a database", "seeds": again}
    return [
        (
            f"{names[dimension]} for {100 * foreseen.power_wanted:.0f} % power",
            f"{size:,}" if size is not None else "no number suffices while the others stay as they are",
        )
        for dimension, size in foreseen.needed.items()
    ]


def _costs(foreseen: "Prospect") -> list[tuple[str, str]]:
    """List calls, tokens and hours."""
    cost = foreseen.effort
    hours = "unknown; give --seconds-per-call" if cost.hours is None else f"{cost.hours:,.1f}"
    return [
        ("calls", f"{cost.calls:,} with a recording ({cost.calls_unrecorded:,} without)"),
        ("tokens", f"{cost.tokens / 1e6:,.1f} million"),
        ("hours", hours),
    ]


def _ends(ends: tuple[float, float], digits: int = 2) -> str:
    return f"[{ends[0]:+.{digits}f}, {ends[1]:+.{digits}f}]"


def _figure(foreseen: "Prospect") -> "Figure":
    """Draw power against the lift, and the detectable lift against databases, as a report's figures are drawn."""
    from sqlcrystal.study.report.drawing import Figure, Panel

    design = foreseen.forecast.design
    caption = (
        f"Planned by {foreseen.truth}: standard deviation of the lift between databases {design.spread_pp:.2f} pp,"
        f" {100 * design.held_out:.0f} % held out. Two-sided 5 % test clustered by database."
    )
    return Figure(
        "power",
        "What a study of this kind can find out",
        caption,
        (Panel(lambda axes: _powers(axes, foreseen), 3.4), Panel(lambda axes: _detectable(axes, foreseen), 3.4)),
    )


def _powers(axes: "Axes", foreseen: "Prospect") -> None:
    from sqlcrystal.study.report.drawing import QUIET

    design = foreseen.forecast.design
    axes.axhline(100 * foreseen.power_wanted, color=QUIET, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.axvline(design.lift_pp, color=QUIET, linewidth=0.8, linestyle=(0, (4, 3)))
    _draw(axes, foreseen.power_by_lift, scale=100)
    axes.set_xlabel("True lift (percentage points)")
    axes.set_ylabel("Power (%)")
    axes.set_ylim(0, 102)
    axes.set_title(f"(a) {design.seeds} seeds")
    axes.legend(loc="lower right")


def _detectable(axes: "Axes", foreseen: "Prospect") -> None:
    from sqlcrystal.study.report.drawing import QUIET

    axes.axhline(foreseen.forecast.design.lift_pp, color=QUIET, linewidth=0.8, linestyle=(0, (4, 3)))
    _draw(axes, foreseen.detectable_by_databases, scale=1)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.minorticks_off()
    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        ticks = [tick for tick in TICKS if low <= tick <= high]
        axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xlabel("Databases")
    axes.set_ylabel("Lift found with 80 % power (pp)")
    axes.set_title("(b) What more databases buy")
    axes.legend(loc="upper right")


def _draw(axes: "Axes", curves: "tuple[Curve, ...]", *, scale: float) -> None:
    from sqlcrystal.study.report.drawing import MARKERS, PALETTE

    for index, curve in enumerate(curves):
        axes.plot(
            curve.x,
            [scale * y for y in curve.y],
            color=PALETTE[index],
            marker=MARKERS[index],
            markevery=5,
            markersize=4,
            linewidth=1.6,
            label=curve.name,
        )
