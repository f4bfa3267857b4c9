"""RQ1 tables: what future value the bank provides, setting by setting, database by database."""

from collections import Counter

from sqlcrystal.measurement.flips import pair_up, stability
from sqlcrystal.measurement.statistics import mcnemar_p
from sqlcrystal.measurement.strata import Effect, correlation, effects, top_share
from sqlcrystal.study.report.comparisons import finding
from sqlcrystal.study.report.facts import Facts, accuracy, evaluable
from sqlcrystal.study.report.summary import rerun_rows
from sqlcrystal.study.report.table import Absent, Table
from sqlcrystal.study.report.wording import (
    NONE,
    interval,
    kept_ratios,
    number,
    per_seed,
    percent,
    plural,
    points,
    probability,
)

NO_MEMORY = "outcomes without memory and with the default arm on held-out questions"


def sample(facts: Facts) -> str:
    """What a table rests on: benchmark, model, seeds, questions and clusters."""
    rows = facts.rows(facts.default)
    databases = len({row.database for row in rows})
    manifest = facts.manifest
    return (
        f"{manifest.benchmark}, {manifest.model}, {plural(len(facts.seeds), 'seed')}; {len(rows):,} held-out"
        f" question–seed pairs in {plural(databases, 'database')}."
    )


def cr_main(facts: Facts) -> Table | Absent:
    """The settings a single memory score would conflate, with CR beside the absolute lift."""
    title, lift = "Complementary future-value settings", finding(facts, "transfer")
    if lift is None:
        return Absent(key="cr-main", title=title, needs=NO_MEMORY)
    found, boot = lift.found, lift.two_stage
    again = percent(accuracy(rerun_rows(facts)))
    rows: list[tuple[str, ...]] = [("Collection side: the verified questions that entered the bank",)]
    for name, setting, how in (
        ("Exact-query replay, %", "replay", "own card eligible"),
        ("Cross-question retention, %", "retention", "own card removed"),
    ):
        rows.append((name, again, percent(accuracy(facts.rows(facts.default, setting))), how))
    rows += [
        ("Held out: new questions over the same databases",),
        (
            "Transfer EX, %",
            percent(found.a, 2),
            percent(found.b, 2),
            f"{points(found.delta_pp)} pp, p {probability(found.p_value)}",
        ),
        (
            "Lift, 95% interval (CR2)",
            NONE,
            f"{interval(found.ci_low_pp, found.ci_high_pp)}",
            f"fixed {found.fixed}, broke {found.broke}",
        ),
        (
            "Lift, 95% interval (two-stage)",
            NONE,
            f"{interval(boot.ci_low_pp, boot.ci_high_pp)}",
            f"p {probability(boot.p_value)}",
        ),
        (
            "EX over evaluable questions, %",
            percent(accuracy(evaluable(facts.rows(facts.bare))), 2),
            percent(accuracy(evaluable(facts.rows(facts.default))), 2),
            "all-questions convention above",
        ),
    ]
    ratio = facts.ratio(facts.default)
    if ratio is None:
        rows.append(("CR", NONE, NONE, "undefined: no held-out repair pass"))
    else:
        for method, ends in ratio.estimates().items():
            shown = percent(ratio.ratio.mean) if ratio.ratio.mean is not None else "undefined"
            rows.append((f"CR, % ({method})", NONE, shown, kept_ratios(ends)))
        own = percent(ratio.ratio.against_own_floor)
        rows.append(("CR, % (alternative denominator)", NONE, own, "headroom against the transfer run's own floor"))
    note = f"{sample(facts)} CR divides the lift by the repair headroom on the same questions; it is no probability."
    return Table(
        key="cr-main",
        title=title,
        columns=("Setting", "Reference", "With memory", "Summary"),
        rows=tuple(rows),
        note=note,
    )


def headroom(facts: Facts) -> Table | Absent:
    """Held-out repair headroom, the denominator of every CR."""
    title, ratio = "Held-out on-demand repair headroom", facts.ratio(facts.default)
    if ratio is None:
        return Absent(key="headroom", title=title, needs="the held-out repair pass (setting repair)")
    rows = tuple(
        (
            f"{facts.manifest.model} / {seed}",
            percent(100 * count.repair_floor / count.n),
            percent(100 * count.repaired / count.n),
            percent(100 * count.headroom / count.n, 2),
            points(100 * count.lift / count.n),
            percent(ratio.ratio.per_seed[index]) if ratio.ratio.per_seed[index] is not None else "undefined",
            str(count.n),
        )
        for index, (seed, count) in enumerate(ratio.counts.items())
    )
    return Table(
        key="headroom",
        title=title,
        columns=("Model / seed", "Floor of the pass", "P_K", "Gap (pp)", "Memory lift (pp)", "CR (%)", "n"),
        rows=rows,
        note="Measured once per seed by an oracle-triggered repair pass whose episodes are never stored.",
    )


def database_effects(facts: Facts) -> list[tuple[Effect, int]]:
    """Per database, the effect of memory and the cards of its bank over all seeds; best first."""
    cards = Counter(card.database for seed in facts.seeds for card in facts.bank(facts.default, seed).values())
    found = effects(facts.headline, lambda pair: pair.after.database)
    return [(effect, cards[effect.name]) for effect in sorted(found, key=lambda e: (-e.delta_pp, e.name))]


def per_database(facts: Facts) -> Table | Absent:
    """How the lift spreads over databases, and whether card counts predict it."""
    title, found = "Per-database effect of memory", database_effects(facts)
    if not found:
        return Absent(key="per-database", title=title, needs=NO_MEMORY)
    r = correlation([cards for _, cards in found], [effect.delta_pp for effect, _ in found])
    gained = sum(effect.net > 0 for effect, _ in found)
    share = top_share([effect.net for effect, _ in found])
    carried = f" The top three carry {percent(share, 0)}% of the net gain." if share is not None else ""
    rows = tuple(
        (e.name, str(e.n), str(cards), percent(e.before), points(e.delta_pp), points(e.net, 0), f"{e.fixed}/{e.broke}")
        for e, cards in found
    )
    return Table(
        key="per-database",
        title=title,
        columns=("Database", "n", "Cards", "Floor %", "Δ (pp)", "Net questions", "Fixed/broke"),
        rows=rows,
        note=f"Seeds pooled. {gained} of {plural(len(found), 'database')} gain.{carried}"
        f" Card count and lift: Pearson r = {points(r)}.",
    )


def difficulty(facts: Facts) -> Table | Absent:
    """The headline re-read under the subset rule and by difficulty."""
    title, pairs = "Subset metric and difficulty strata", facts.headline
    if not pairs:
        return Absent(key="difficulty", title=title, needs=NO_MEMORY)
    rows: list[tuple[str, ...]] = []
    bare, memory = facts.rows(facts.bare), facts.rows(facts.default)
    if any("subset" in row.rules for row in memory):
        rows.append(("Subset metric, per seed",))
        before, after = facts.by_seed(bare, "subset"), facts.by_seed(memory, "subset")
        known = {(row.seed, row.question): row.rules.get("subset", False) for row in bare}
        for seed in facts.seeds:
            both = [
                (known[seed, r.question], r.rules.get("subset", False))
                for r in memory
                if r.seed == seed and (seed, r.question) in known
            ]
            if not both:
                continue
            fixed, broke = both.count((False, True)), both.count((True, False))
            rows.append(
                (
                    f"seed {seed}",
                    str(len(both)),
                    percent(before[seed]),
                    percent(after[seed]),
                    points(100 * (fixed - broke) / len(both)),
                    f"{fixed}/{broke}",
                    probability(mcnemar_p(fixed=fixed, broke=broke)),
                )
            )
    labelled = sorted(
        (pair for pair in pairs if pair.after.difficulty), key=lambda pair: _hardness(pair.after.difficulty)
    )
    strata = effects(labelled, lambda pair: pair.after.difficulty)
    if strata:
        rows.append((f"Difficulty, pooled over seeds (rule {facts.manifest.rule})",))
        rows += [
            (
                e.name,
                str(e.n),
                percent(e.before),
                percent(e.after),
                points(e.delta_pp),
                f"{e.fixed}/{e.broke}",
                probability(e.mcnemar_p),
            )
            for e in strata
        ]
    return Table(
        key="difficulty",
        title=title,
        columns=("Stratum", "n pairs", "No memory %", "Memory %", "Lift (pp)", "Fixed/broke", "p"),
        rows=tuple(rows),
        note="p is exact McNemar's, a diagnostic that treats pairs as independent.",
    )


def _hardness(label: str) -> tuple[int, str]:
    known = ("simple", "easy", "moderate", "medium", "challenging", "hard", "extra")
    return known.index(label) if label in known else len(known), label


def data(facts: Facts) -> Table | Absent:
    """Held-out and collected questions per database."""
    title, rows = "Questions per database", facts.rows(facts.default)
    if not rows:
        return Absent(key="data", title=title, needs=NO_MEMORY)
    held = Counter(row.database for row in rows)
    unique = Counter(database for database, _ in {(row.database, row.question) for row in rows})
    collected = Counter(row.database for row in facts.rows(facts.default, "collection"))
    body = [
        (name, number(n), number(unique[name]), number(collected[name]) if collected else NONE)
        for name, n in held.most_common()
    ]
    body.append(("all", number(held.total()), number(unique.total()), number(collected.total()) if collected else NONE))
    return Table(
        key="data",
        title=title,
        columns=("Database", "Held out (all seeds)", "Held out (unique)", "Collected (all seeds)"),
        rows=tuple(body),
    )


def flips(facts: Facts) -> Table | Absent:
    """The fix/break ledger, per seed and across seeds."""
    title, pairs = "Fixes and breaks, stable and churning", facts.headline
    if not pairs:
        return Absent(key="flips", title=title, needs=NO_MEMORY)
    rows: list[tuple[str, ...]] = [
        (f"seed {e.name}", str(e.n), str(e.fixed), str(e.broke), points(e.net, 0), probability(e.mcnemar_p))
        for e in effects(pairs, lambda pair: str(pair.after.seed))
    ]
    total = effects(pairs, lambda _: "all seeds")[0]
    found = stability(pairs)
    rows += [
        (
            "all seeds",
            str(total.n),
            str(total.fixed),
            str(total.broke),
            points(total.net, 0),
            probability(total.mcnemar_p),
        ),
        (
            "stable across seeds (questions)",
            str(found.repeated),
            str(len(found.stable_fixes)),
            str(len(found.stable_breaks)),
            points(len(found.stable_fixes) - len(found.stable_breaks), 0),
            NONE,
        ),
        (
            "churn (events)",
            NONE,
            str(found.churn_fixes),
            str(found.churn_breaks),
            points(found.churn_fixes - found.churn_breaks, 0),
            NONE,
        ),
    ]
    return Table(
        key="flips",
        title=title,
        columns=("Scope", "n", "Fixed", "Broke", "Net", "McNemar p"),
        rows=tuple(rows),
        note=(
            "Stable: the same verdict in every seed where a question is held out, at least twice. "
            f"{plural(len(found.both), 'question')} fixed under one seed and broken under another."
        ),
    )


def settings_per_seed(facts: Facts) -> Table | Absent:
    """Replay, retention and the rerun floor, seed by seed."""
    title = "Replay, retention and the bare rerun, per seed"
    groups = {
        "Rerun without memory": rerun_rows(facts),
        "Cross-question retention": facts.rows(facts.default, "retention"),
        "Exact-query replay": facts.rows(facts.default, "replay"),
    }
    if not any(groups.values()):
        return Absent(key="settings", title=title, needs="the settings replay, retention and rerun of the default arm")
    kept = pair_up(groups["Rerun without memory"], groups["Cross-question retention"])
    rows = tuple(
        (name, number(len(rows)), per_seed(facts.by_seed(rows).values()), percent(accuracy(rows)))
        for name, rows in groups.items()
    )
    gain = effects(kept, lambda _: "retention")
    note = f"Retention against the rerun: fixed {gain[0].fixed}, broke {gain[0].broke}." if gain else ""
    seeds = "/".join(str(seed) for seed in facts.seeds)
    return Table(
        key="settings", title=title, columns=("Setting", "n", f"% per seed ({seeds})", "Mean %"), rows=rows, note=note
    )
