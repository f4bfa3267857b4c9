"""Cost tables: calls and tokens, the lifecycle account, break-even; and each part of a served answer with its cost."""

from collections.abc import Callable, Sequence
from statistics import fmean

from msgspec.structs import replace

from sqlcrystal.ledger.records import Arm, Outcome, Side
from sqlcrystal.measurement.confidence import Example, calibration, cross_fitted
from sqlcrystal.measurement.cost import (
    BreakEven,
    Construction,
    Rounds,
    Workload,
    after_rounds,
    amortization_horizon,
    break_even,
    construction,
    headroom_share,
    repair_overhead,
    serving,
    tokens_per_point,
    workload_lift,
)
from sqlcrystal.measurement.flips import pair_up, to_outcomes
from sqlcrystal.study.report.arm_rows import grouped, label, told
from sqlcrystal.study.report.facts import Facts, percent_right
from sqlcrystal.study.report.table import NONE, Body, Cells, described, number, percent, plural, points
from sqlcrystal.study.report.value_tables import sample

RECURRENCES = (0.0, 0.1, 0.25, 0.5)
DEFAULT_WORKLOAD = Workload(recurrence=0.2, value_per_correct=0.01, prompt_price=0.1, completion_price=0.4)
"""An example, not a measurement: every use of it is printed with these figures."""


def amortization(facts: Facts) -> Body | None:
    """Call-level and lifecycle cost."""
    longest = max((row.rounds for row in facts.repairs if row.rounds), default=1)
    bare = _stopped(facts.repairs, longest)
    remembered = facts.rows(facts.default, "repair")
    memory = _stopped(remembered, longest) if any(row.cards for row in remembered) else {}
    if not bare:
        return None
    rows: list[Cells] = []
    for limit in bare:
        ceiling = " (P_K)" if limit == longest else ""
        floor = facts.bare.name if facts.bare else "no memory"
        rows += [_rounds_row(f"{floor}: {plural(limit, 'repair round')}{ceiling}", bare[limit])]
        rows += [_rounds_row(f"{facts.default.name}: {plural(limit, 'repair round')}", memory[limit])] if memory else []
    account = _lifecycle(facts)
    rows += [("Lifecycle token account",), *((name, value, NONE, NONE) for name, value in account)] if account else []
    guessed = max(stopped.imputed_share for stopped in (*bare.values(), *memory.values()))
    imputed = (
        f" Calls per round were not recorded for {percent(guessed)}% of the repairs and taken as equal."
        if guessed
        else ""
    )
    return Body(
        columns=("Configuration", "First attempt % / value", "Final %", "Calls per question"),
        rows=tuple(rows),
        note=_round_note(memory.get(1), bare.get(longest))
        + " A pass of fewer rounds is the prefix of the longer one."
        + imputed
        + " The horizon counts tokens only: embedding, database time, latency and money are separate.",
    )


def _stopped(repairs: Sequence[Outcome], longest: int) -> dict[int, Rounds]:
    """A repair pass as it stood after one round, and after the most rounds that the bare pass took to reach P_K."""
    return {limit: stopped for limit in sorted({1, longest}) if (stopped := after_rounds(repairs, limit))}


def _rounds_row(name: str, stopped: Rounds) -> Cells:
    return name, percent(stopped.first, 2), percent(stopped.final, 2), number(stopped.calls, 2)


def _round_note(memory: Rounds | None, full: Rounds | None) -> str:
    """Tell what memory with one round achieves of what the longest repair without memory does."""
    if memory is None or full is None:
        return "Memory with repair at serving time was not run."
    share = headroom_share(floor=full.first, reached=memory.final, ceiling=full.final)
    calls = percent(100 * memory.calls / full.calls, 0)
    return f"Memory with one round reaches {percent(share, 0)}% of the repair headroom at {calls}% of the calls."


def bank_cost(facts: Facts, arm: Arm) -> Construction | None:
    """Tell what an arm's bank cost to build; None when the study did not record the pass."""
    bare = [*facts.rows(facts.bare), *facts.rows(facts.bare, "rerun"), *facts.rows(facts.default, "rerun")]
    first_attempts = {row.question: (row.prompt_tokens, row.completion_tokens) for row in bare if not row.cards}
    return construction(facts.rows(arm, "collection"), first_attempts=first_attempts)


def _lifecycle(facts: Facts) -> list[tuple[str, str]]:
    built, plain, served = (
        bank_cost(facts, facts.default),
        serving(facts.rows(facts.bare)),
        serving(facts.rows(facts.default)),
    )
    lift = facts.compare(facts.bare, facts.default)
    if not (plain and served and lift):
        return []
    prompt, total = served.prompt - plain.prompt, served.total - plain.total
    more = f" ({points(100 * prompt / plain.prompt, 0)}%)" if plain.prompt else ""
    rows = [
        (f"Recurring overhead (k={facts.default.k}), prompt tokens", f"{points(prompt, 0)} per query{more}"),
        (f"Recurring overhead (k={facts.default.k}), all tokens", f"{points(total, 0)} per query"),
    ]
    if built:
        full, part = (
            amortization_horizon(construction_tokens=tokens, overhead_tokens=prompt)
            for tokens in (built.full, built.marginal)
        )
        guessed = f"; {percent(built.imputed_share)}% of the first attempts imputed" if built.imputed_share else ""
        rows += [
            (
                "Construction, full / marginal",
                f"{number(built.full)} / {number(built.marginal)} tokens per {facts.split}{guessed}",
            ),
            (
                "Construction, calls and probes",
                f"{number(built.calls)} calls, {number(built.probes)} probes per {facts.split}",
            ),
            ("Amortization horizon", f"{number(part)} marginal / {number(full)} full future queries"),
        ]
    extra = repair_overhead(facts.rows(facts.bare), facts.repairs)
    rows.append(_per_point(facts, "Prompt tokens", prompt, extra[0] if extra else None))
    rows.append(_per_point(facts, "All tokens", total, sum(extra) if extra else None))
    return rows


def _per_point(facts: Facts, name: str, memory: float, repair: float | None) -> tuple[str, str]:
    """Tell what a point of accuracy costs per query, by memory and by repair at serving time."""
    lift = facts.compare(facts.bare, facts.default)
    stopped = after_rounds(facts.repairs, max((row.rounds for row in facts.repairs), default=0))
    ours = tokens_per_point(tokens_per_query=memory, lift_pp=lift.delta_pp) if lift else None
    gap = stopped.final - stopped.first if stopped else 0.0
    theirs = tokens_per_point(tokens_per_query=repair, lift_pp=gap) if repair is not None else None
    versus = f" ({theirs / ours:.1f}×)" if ours and theirs else ""
    return f"{name} per point per query", f"memory {number(ours)} / serve-time repair {number(theirs)}{versus}"


def tokens(facts: Facts) -> Body | None:
    """Solver tokens per question, by width and by writer."""
    plain = serving(facts.rows(facts.bare))
    if facts.bare is None or plain is None or not plain.prompt:
        return None
    widths = sorted(facts.varying("k"), key=lambda arm: arm.k)
    formats = sorted(facts.varying("writer"), key=lambda arm: arm.writer)
    shown = {arm.name for arm in (facts.bare, *widths, *formats)}
    others = [arm for arm in facts.arms.values() if arm.name not in shown and facts.rows(arm)]
    rows: list[Cells] = [_token_row(facts, facts.bare)]
    groups = (("Width", widths), (f"Format, k={facts.default.k}", formats), ("Other arms", others))
    for heading, arms in groups:
        rows += [(heading,), *grouped(facts, arms, _token_row, beside=(facts.bare,))] if arms else []
    columns = ("Arm", "Calls", "Prompt tokens", "Δ none", "Completion", "All tokens", "Prompt tokens per pp")
    note = f"Averages per held-out question, over the {facts.split}s that were run."
    return Body(columns=columns, rows=tuple(rows), note=note)


def _token_row(facts: Facts, arm: Arm) -> Cells:
    cost, plain, lift = serving(facts.rows(arm)), serving(facts.rows(facts.bare)), facts.compare(facts.bare, arm)
    if cost is None or plain is None:
        return (label(facts, arm), *[NONE] * 6)
    extra = cost.prompt - plain.prompt
    worth = tokens_per_point(tokens_per_query=extra, lift_pp=lift.delta_pp) if lift and arm.remembers else None
    change = NONE if arm is facts.bare else points(extra, 0)
    counts = number(cost.completion), number(cost.total), number(worth)
    return label(facts, arm), number(cost.calls, 2), number(cost.prompt), change, *counts


def payback(workload: Workload) -> Callable[[Facts], Body | None]:
    """The table of queries until memory has paid back, by recurrence rate, under the user's assumptions."""

    def build(facts: Facts) -> Body | None:
        rates = sorted({*RECURRENCES, workload.recurrence})
        rows = [
            _payback_row(rate, break_even)
            for rate in rates
            if (break_even := _break_even(facts, replace(workload, recurrence=rate)))
        ]
        columns = (
            "Questions that recur",
            "Gain per query",
            "Overhead per query",
            "Construction",
            "Break-even, queries",
            "95% interval",
        )
        note = (
            f"Assumed, not measured: one more right answer is worth {workload.value_per_correct:g}; a million prompt"
            f" tokens cost {workload.prompt_price:g}, completion tokens {workload.completion_price:g}, in one currency;"
            " a recurring question is one of the banked ones; new questions gain the held-out lift;"
            f" full construction of one {facts.split}. The interval is that of the lift: never, where memory may not"
            " gain."
        )
        return Body(columns=columns, rows=tuple(rows), note=note)

    return build


def _break_even(facts: Facts, workload: Workload) -> BreakEven | None:
    built, replay, again = bank_cost(facts, facts.default), facts.rows(facts.default, "replay"), facts.reruns
    plain, served = serving(facts.rows(facts.bare)), serving(facts.rows(facts.default))
    lift, right, floor = facts.compare(facts.bare, facts.default), percent_right(replay), percent_right(again)
    recurring = pair_up(again, replay)
    if not (built and plain and served and lift and recurring) or right is None or floor is None:
        return None
    over = workload_lift(
        transfer=to_outcomes(facts.headline), replay=to_outcomes(recurring), recurrence=workload.recurrence
    )
    return break_even(
        workload=workload,
        transfer_lift=lift.delta_pp / 100,
        replay_lift=(right - floor) / 100,
        overhead_prompt_tokens=served.prompt - plain.prompt,
        construction_prompt_tokens=built.prompt,
        construction_completion_tokens=built.completion,
        lift=over,
    )


def _payback_row(rate: float, break_even: BreakEven) -> Cells:
    never = "never"
    ends = [number(end) if end else never for end in (break_even.earliest, break_even.latest)]
    return (
        f"{100 * rate:g}%",
        f"{break_even.gain_per_query:.6f}",
        f"{break_even.overhead_per_query:.6f}",
        f"{break_even.construction:.4f}",
        number(break_even.queries) if break_even.queries is not None else never,
        " to ".join(dict.fromkeys(ends)) if break_even.has_interval else NONE,
    )


SERVED = "served"
MOST_GROUPS = 10


def as_served(facts: Facts) -> Body | None:
    """Every arm that was answered by the service's own code, beside one shot without memory."""
    arms = [arm for arm in facts.arms.values() if facts.rows(arm, SERVED)]
    if not arms or facts.bare is None:
        return None
    bare = facts.rows(facts.bare)
    rows = [_row("one shot, no memory", bare, NONE, NONE, NONE), *(_served_row(facts, arm) for arm in arms)]
    columns = (
        "Answered by",
        "Right %",
        "Over one shot (pp) [95% CI]; p",
        "Fixed",
        "Broken",
        "Calls",
        "Prompt tokens",
        "To read with a prefix cache",
        "Reply tokens",
        "Model seconds",
    )
    note = (
        f"{sample(facts)} Answered, chosen and repaired by the code of the service, without an oracle. Calls, tokens"
        " and seconds are means a question. A prefix cache that holds the database's schema and the answer's earlier"
        " prompts must read the tokens after them, estimated by characters."
    )
    return Body(columns=columns, rows=tuple(rows), note=note)


def _served_row(facts: Facts, arm: Arm) -> tuple[str, ...]:
    assert facts.bare is not None
    result = facts.compare_sides(Side(facts.bare.name), Side(arm.name, SERVED))
    fixed, broke = (number(result.fixed), number(result.broke)) if result else (NONE, NONE)
    name = f"{label(facts, arm)}: {described(facts, arm)}"
    return _row(name, facts.rows(arm, SERVED), told(result), fixed, broke)


def _row(name: str, rows: Sequence[Outcome], lift: str, fixed: str, broke: str) -> tuple[str, ...]:
    def mean(field: str) -> float:
        return fmean(getattr(row, field) for row in rows)

    read = number(mean("read_tokens"), 0) if any(row.read_tokens for row in rows) else NONE
    prompt, reply = (number(mean(field), 0) for field in ("prompt_tokens", "completion_tokens"))
    cost = (prompt, read, reply, number(mean("seconds"), 2))
    return name, percent(percent_right(rows)), lift, fixed, broke, number(mean("calls"), 2), *cost


def readings(facts: Facts) -> Body | None:
    """Count how often a served answer would be given as two readings, and which of the two is right."""
    arms = [arm for arm in facts.arms.values() if any(row.other_sql for row in facts.rows(arm, SERVED))]
    if not arms:
        return None
    body = []
    for arm in arms:
        rows = facts.rows(arm, SERVED)
        asked = [row for row in rows if row.other_sql]
        first = sum(row.right for row in asked)
        second = sum(row.other_right and not row.right for row in asked)
        shares = (first, second, len(asked) - first - second)
        name = f"{label(facts, arm)}: {described(facts, arm)}"
        each = (percent(100 * count / len(asked)) for count in shares)
        body.append((name, number(len(rows)), number(len(asked)), percent(100 * len(asked) / len(rows)), *each))
    columns = (
        "Answered by",
        "Answers",
        "With two readings",
        "Share %",
        "First right %",
        "Only second right %",
        "Neither %",
    )
    note = (
        "Two views run without a sign of trouble, give other rows, and no two views agree: then people pick one. The"
        " first is the answer that stands otherwise."
    )
    return Body(columns=columns, rows=tuple(body), note=note)


def confidence(facts: Facts) -> Body | None:
    """Show how often answers are right that are called so sure; each by a model that never saw its database."""
    served = [arm for arm in facts.arms.values() if all(row.traits for row in facts.rows(arm, SERVED))]
    arm = max(served, key=lambda arm: len(facts.rows(arm, SERVED)), default=None)
    rows = facts.rows(arm, SERVED)
    databases = {row.database for row in rows}
    if arm is None or len(databases) < 2 or len({row.right for row in rows}) < 2:
        return None
    right = [row.right for row in rows]
    held = calibration(cross_fitted([Example(row.traits, row.right, row.database) for row in rows]), right)
    body = [
        (number(part.n), percent(100 * part.n / held.n), percent(100 * part.said), percent(100 * part.right))
        for part in held.bins
    ]
    note = (
        f"Served answers of {arm.name}. Every probability is of a model fitted on other databases, in"
        f" {min(MOST_GROUPS, len(databases))} groups. Expected calibration error {number(held.error, 3)}, Brier score"
        f" {number(held.brier, 3)}; of the surest third {percent(100 * held.surest_third)}% are right."
    )
    return Body(columns=("Answers", "Share of all %", "Said to be right %", "Right %"), rows=tuple(body), note=note)
