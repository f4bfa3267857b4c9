"""Cost tables: calls and tokens per configuration, the lifecycle account, and the break-even of a workload."""

from collections.abc import Sequence

from msgspec.structs import replace

from sqlcrystal.measurement.cost import Workload, amortization_horizon, break_even, headroom_share, tokens_per_point
from sqlcrystal.study.ledger import Arm, Outcome
from sqlcrystal.study.report.account import (
    Rounds,
    after_rounds,
    construction,
    repair_overhead,
    serving,
)
from sqlcrystal.study.report.decision_tables import WRITER_NAMES
from sqlcrystal.study.report.facts import Facts, accuracy, is_bare
from sqlcrystal.study.report.summary import rerun_rows
from sqlcrystal.study.report.table import Absent, Table
from sqlcrystal.study.report.wording import NONE, number, percent, points

RECURRENCES = (0.0, 0.1, 0.25, 0.5)


def amortization(facts: Facts) -> Table | Absent:
    """Call-level and lifecycle cost."""
    title = "Call-level and lifecycle cost"
    longest = max((row.rounds for row in facts.repairs if row.rounds), default=1)
    bare = _stopped(facts.repairs, "no memory", longest)
    remembered = facts.rows(facts.default, "repair")
    memory = _stopped(remembered, f"{facts.default.writer} memory", longest) if any(r.cards for r in remembered) else {}
    if not bare:
        return Absent(key="amortization", title=title, needs="the held-out repair pass (setting repair)")
    rounds = [made[limit] for limit in bare for made in (bare, memory) if limit in made]
    rows: list[tuple[str, ...]] = [
        (r.name, percent(r.first, 2), percent(r.final, 2), number(r.calls, 2)) for r in rounds
    ]
    account = _lifecycle(facts)
    if account:
        rows += [("Lifecycle token account",), *((name, value, NONE, NONE) for name, value in account)]
    return Table(
        key="amortization",
        title=title,
        columns=("Configuration", "First attempt % / value", "Final %", "Calls per question"),
        rows=tuple(rows),
        note=_round_note(memory.get(1), bare.get(longest))
        + " A pass of fewer rounds is the prefix of the longer one. The horizon counts tokens only: embedding, database"
        " time, latency and money are separate.",
    )


def _stopped(repairs: Sequence[Outcome], name: str, longest: int) -> dict[int, Rounds]:
    """A repair pass stopped after one round and after the most that the bare pass, whose end is P_K, went through."""
    found = {}
    for limit in sorted({1, longest}):
        label = f"{name} + {limit} repair round{'s' if limit > 1 else ''}"
        is_pk = name == "no memory" and limit == longest
        if made := after_rounds(repairs, limit, f"{label} (P_K)" if is_pk else label):
            found[limit] = made
    return found


def _round_note(memory: Rounds | None, full: Rounds | None) -> str:
    """What memory with one round achieves of what the longest repair without memory does."""
    if memory is None or full is None:
        return "Memory with repair at serving time was not run."
    share = headroom_share(floor=full.first, reached=memory.final, ceiling=full.final)
    calls = percent(100 * memory.calls / full.calls, 0)
    return f"Memory with one round reaches {percent(share, 0)}% of the repair headroom at {calls}% of the calls."


def _lifecycle(facts: Facts) -> list[tuple[str, str]]:
    built, plain, served = (
        construction(facts, facts.default),
        serving(facts.rows(facts.bare)),
        serving(facts.rows(facts.default)),
    )
    lift = facts.compare(facts.bare, facts.default)
    if not (plain and served and lift):
        return []
    overhead = served.prompt - plain.prompt
    rows = [
        (
            f"Recurring prompt overhead (k={facts.default.k})",
            f"{points(overhead, 0)} tokens per query ({points(100 * overhead / plain.prompt, 0)}%)",
        )
    ]
    if built:
        rows += [
            ("Construction, full / marginal", f"{number(built.full)} / {number(built.marginal)} tokens per seed"),
            ("Construction, calls and probes", f"{number(built.calls)} calls, {number(built.probes)} probes per seed"),
        ]
        full = amortization_horizon(construction_tokens=built.full, overhead_tokens=overhead)
        part = amortization_horizon(construction_tokens=built.marginal, overhead_tokens=overhead)
        rows.append(("Amortization horizon", f"{number(part)} marginal / {number(full)} full future queries"))
    memory_cost = tokens_per_point(tokens_per_query=overhead, lift_pp=lift.delta_pp)
    extra, ceiling = repair_overhead(facts), facts.ratio(facts.default)
    gap = sum(100 * c.headroom / c.n for c in ceiling.counts.values()) / len(ceiling.counts) if ceiling else 0.0
    repair_cost = tokens_per_point(tokens_per_query=extra, lift_pp=gap) if extra else None
    versus = f" ({repair_cost / memory_cost:.1f}×)" if repair_cost and memory_cost else ""
    rows.append(
        (
            "Prompt tokens per point per query",
            f"memory {number(memory_cost)} / serve-time repair {number(repair_cost)}{versus}",
        )
    )
    return rows


def tokens(facts: Facts) -> Table | Absent:
    """Solver tokens per question, by width and by writer."""
    title, plain = "Measured solver tokens per question", serving(facts.rows(facts.bare))
    if plain is None or not plain.prompt:
        return Absent(key="tokens", title=title, needs="token counts of the arm without memory")
    widths = {f"k={arm.k}": arm for arm in sorted(facts.varying("k"), key=lambda arm: arm.k)}
    formats = {
        WRITER_NAMES.get(arm.writer, arm.writer): arm for arm in sorted(facts.varying("writer"), key=lambda a: a.writer)
    }
    shown = {arm.name for arm in (*widths.values(), *formats.values())}
    others = {arm.name: arm for arm in facts.arms.values() if arm.name not in shown and arm is not facts.bare}
    rows: list[tuple[str, ...]] = [
        ("No memory", number(plain.calls, 2), number(plain.prompt), NONE, number(plain.completion), NONE)
    ]
    for heading, arms in (("Width", widths), (f"Format, k={facts.default.k}", formats), ("Other arms", others)):
        known = [row for name, arm in arms.items() if (row := _token_row(facts, name, arm, plain.prompt))]
        rows += [(heading,), *known] if known else []
    return Table(
        key="tokens",
        title=title,
        columns=("Configuration", "Calls", "Prompt", "Δ none", "Completion", "Prompt tokens per pp"),
        rows=tuple(rows),
    )


def _token_row(facts: Facts, name: str, arm: Arm, plain: float) -> tuple[str, ...] | None:
    cost, lift = serving(facts.rows(arm)), facts.compare(facts.bare, arm)
    if cost is None or lift is None:
        return None
    extra = cost.prompt - plain
    worth = None if is_bare(arm) else tokens_per_point(tokens_per_query=extra, lift_pp=lift.delta_pp)
    return name, number(cost.calls, 2), number(cost.prompt), points(extra, 0), number(cost.completion), number(worth)


def payback(facts: Facts, workload: Workload) -> Table | Absent:
    """Queries until memory has paid back, by recurrence rate."""
    title, built = "Break-even of a workload (assumptions in the note)", construction(facts, facts.default)
    lift, replay, again = (
        facts.compare(facts.bare, facts.default),
        accuracy(facts.rows(facts.default, "replay")),
        accuracy(rerun_rows(facts)),
    )
    plain, served = serving(facts.rows(facts.bare)), serving(facts.rows(facts.default))
    if not (built and lift and plain and served) or replay is None or again is None:
        return Absent(
            key="break-even", title=title, needs="the settings collection, replay and rerun of the default arm"
        )
    rows = []
    for rate in sorted({*RECURRENCES, workload.recurrence}):
        found = break_even(
            workload=replace(workload, recurrence=rate),
            transfer_lift=lift.delta_pp / 100,
            replay_lift=(replay - again) / 100,
            overhead_prompt_tokens=served.prompt - plain.prompt,
            construction_prompt_tokens=built.prompt,
            construction_completion_tokens=built.completion,
        )
        when = number(found.queries) if found.queries is not None else "never"
        rows.append(
            (
                f"{100 * rate:g}%",
                f"{found.gain_per_query:.6f}",
                f"{found.overhead_per_query:.6f}",
                f"{found.construction:.4f}",
                when,
            )
        )
    return Table(
        key="break-even",
        title=title,
        columns=("Questions that recur", "Gain per query", "Overhead per query", "Construction", "Break-even, queries"),
        rows=tuple(rows),
        note=(
            f"Assumed, not measured: one more right answer is worth {workload.value_per_correct:g}; a million prompt"
            f" tokens cost {workload.prompt_price:g}, completion tokens {workload.completion_price:g}, in one currency;"
            " a recurring question is one of the banked ones; new questions gain the held-out lift;"
            " full construction of one seed."
        ),
    )
