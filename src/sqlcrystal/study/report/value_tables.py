"""RQ1 tables: the future value of the bank, setting by setting, database by database, and turn by turn in dialogues."""

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from sqlcrystal.ledger.records import Outcome, Side
from sqlcrystal.measurement import settings
from sqlcrystal.measurement.comparison import compare
from sqlcrystal.measurement.flips import (
    UNEVALUABLE,
    Effect,
    Pair,
    Stability,
    breaks,
    correlation,
    effects,
    fixes,
    pair_up,
    stability,
    to_outcomes,
    top_share,
)
from sqlcrystal.study.report.comparisons import headline
from sqlcrystal.study.report.facts import Facts, percent_right
from sqlcrystal.study.report.table import (
    METHOD_NAMES,
    NONE,
    Body,
    Cells,
    judged,
    kept_ratios,
    listed,
    number,
    per_seed,
    percent,
    plural,
    points,
    probability,
    source_note,
)

NO_MEMORY = "outcomes without memory and with the default arm on held-out questions"
REPAIR_PASS = "the held-out repair pass (setting repair)"


def _shared(facts: Facts) -> str:
    return (
        f"Answers without memory were asked once and are shared by all {facts.split}s and by the repair pass: their own"
        f" drift is in no figure here, and no question can be fixed under one {facts.split} and broken under another."
    )


def sample(facts: Facts) -> str:
    """Tell what a table rests on: benchmark, model, seeds, questions and clusters."""
    rows = facts.rows(facts.default)
    databases = len({row.database for row in rows})
    manifest = facts.manifest
    return (
        f"{manifest.benchmark}, {manifest.model}, {plural(len(facts.seeds), facts.split)}; {len(rows):,} held-out"
        f" question–{facts.split} pairs in {plural(databases, 'database')}."
    )


def cr_main(facts: Facts) -> Body | None:
    """The settings a single memory score would conflate, with CR beside the absolute lift."""
    lift = headline(facts)
    if lift is None:
        return None
    again = percent(percent_right(facts.reruns))
    rows: list[Cells] = [("Collection side: the verified questions that entered the bank",)]
    for name, setting, how in (
        ("Exact-query replay, %", "replay", "own card eligible"),
        ("Cross-question retention, %", "retention", "own card removed"),
    ):
        rows.append((name, again, percent(percent_right(facts.rows(facts.default, setting))), how))
    result, beside = lift.result, lift.beside
    change = f"{points(result.delta_pp)} pp, {judged(result)}; fixed {result.fixed}, broke {result.broke}"
    other = METHOD_NAMES[facts.beside]
    before, after = map(settings.accuracy, facts.both)
    rows += [
        ("Held out: new questions over the same databases",),
        ("Transfer EX, %", percent(before.percent, 2), percent(after.percent, 2), change),
        (f"Lift by the {other}", NONE, points(beside.delta_pp), judged(beside)),
        (
            "EX over evaluable questions, %",
            percent(before.percent_evaluable, 2),
            percent(after.percent_evaluable, 2),
            f"{before.n - before.evaluable} and {after.n - after.evaluable} unevaluable, which count as wrong above",
        ),
        *_reached(facts),
        *_ratios(facts),
    ]
    basis = " ".join(filter(None, (sample(facts), source_note(facts))))
    note = f"{basis} CR divides the lift by the repair headroom on the same questions; it is no probability."
    return Body(columns=("Setting", "Reference", "With memory", "Summary"), rows=tuple(rows), note=note)


def _reached(facts: Facts) -> list[Cells]:
    rows: list[Cells] = []
    for name, repaired, how in (
        ("P_K: repaired on demand, %", facts.repairs, "an oracle says which answers are wrong; nothing is stored"),
        ("P_E: repaired on the engine's signs, %", facts.engine_repairs, "no oracle; nothing is stored"),
    ):
        if repaired:
            first = settings.accuracy(repaired, first=True).percent
            rows.append((name, percent(first, 2), percent(percent_right(repaired), 2), how))
    return [("Repair without memory: first attempt, and what it reaches",), *rows] if rows else []


def _ratios(facts: Facts) -> list[Cells]:
    ratio = facts.ratio(facts.default)
    rows: list[Cells] = [(f"Crystallization ratio: lift over repair headroom, {budget_in_words(facts)}",)]
    if ratio is None:
        return [*rows, ("CR, %", NONE, NONE, "undefined: no held-out repair pass")]
    shown = percent(ratio.ratio.pooled) if ratio.ratio.pooled is not None else "undefined"
    rows += [
        (f"CR, % ({METHOD_NAMES[method]})", NONE, shown, kept_ratios(estimate))
        for method, estimate in ratio.estimates.items()
    ]
    by_seed = f"{facts.split}s {'/'.join(map(str, ratio.counts))}: {per_seed(ratio.ratio.per_seed)}"
    rows.append((f"CR, % (mean of the {facts.split}s)", NONE, percent(ratio.ratio.mean), f"{by_seed}; as in the paper"))
    return [*rows, *_over_all_questions(facts, ratio.ratio.lift_pp)]


def budget_in_words(facts: Facts) -> str:
    """The repair budget that a headroom, and so a ratio, belongs to."""
    return f"K = {facts.manifest.budget}" if facts.manifest.budget else "K not kept in this ledger"


def _over_all_questions(facts: Facts, lift_pp: float) -> list[Cells]:
    """The ratio with the headroom over every question, which does not hang on the draw of the held-out ones."""
    whole = facts.whole_headroom
    if whole is None:
        return []
    reached = f"{percent(100 * whole.repaired / whole.n)}% repaired"
    how = f"P_K over all {plural(whole.n, 'question')}: {reached}, {points(whole.headroom_pp)} pp of headroom"
    floor = percent(100 * whole.floor / whole.n)
    return [("CR, % (headroom over all questions)", floor, percent(whole.share(lift_pp)), how)]


def headroom(runs: Sequence[Facts]) -> Body | None:
    """Held-out repair headroom of every run, the denominator of every CR."""
    rows: list[Cells] = []
    for facts in runs:
        ratio = facts.ratio(facts.default)
        if ratio is None:
            continue
        for (seed, count), crystallized in zip(ratio.counts.items(), ratio.ratio.per_seed, strict=True):
            shares = (count.repair_floor, count.repaired)
            rows.append(
                (
                    facts.manifest.model,
                    facts.manifest.benchmark,
                    str(seed),
                    *(percent(100 * share / count.n) for share in shares),
                    percent(100 * count.headroom / count.n, 2),
                    points(100 * count.lift / count.n),
                    percent(crystallized) if crystallized is not None else "undefined",
                    str(count.n),
                    str(facts.manifest.budget or NONE),
                )
            )
    columns = (
        *(
            "Model",
            "Benchmark",
            split_word(runs).capitalize(),
            "Floor of the pass",
            "P_K",
            "Gap (pp)",
            "Memory lift (pp)",
            "CR (%)",
        ),
        *("n", "K"),
    )
    note = (
        f"Measured once per {split_word(runs)} by an oracle-triggered repair pass whose episodes are never stored."
        " K, the most rounds of a repair, sets the headroom: ratios under different K do not compare."
    )
    return Body(columns=columns, rows=tuple(rows), note=note)


def split_word(runs: Sequence[Facts]) -> str:
    """The word for the splits of several runs."""
    return " or ".join(dict.fromkeys(facts.split for facts in runs))


def database_effects(facts: Facts) -> list[tuple[Effect, int]]:
    """Per database, the effect of memory and the cards of its bank over all seeds; best first."""
    cards = Counter(card.database for card in facts.cards(facts.default))
    by_database = effects(facts.headline, lambda pair: pair.after.database)
    return [
        (effect, cards[effect.name])
        for effect in sorted(by_database, key=lambda effect: (-effect.delta_pp, effect.name))
    ]


def per_database(facts: Facts) -> Body | None:
    """Tell how the lift spreads over databases, and whether card counts predict it."""
    by_database = database_effects(facts)
    if not by_database:
        return None
    r = correlation([cards for _, cards in by_database], [effect.delta_pp for effect, _ in by_database])
    gained = sum(effect.net > 0 for effect, _ in by_database)
    share = top_share([effect.net for effect, _ in by_database])
    carried = f" The top three carry {percent(share, 0)}% of the net gain." if share is not None else ""
    predicts = f" Card count and lift: Pearson r = {points(r)}." if points(r) != NONE else ""
    rows = tuple(
        (
            effect.name,
            str(effect.n),
            str(cards),
            percent(effect.before),
            points(effect.delta_pp),
            points(effect.net, 0),
            f"{effect.fixed}/{effect.broke}",
        )
        for effect, cards in by_database
    )
    return Body(
        columns=("Database", "n", "Cards", "Floor %", "Δ (pp)", "Net questions", "Fixed/broke"),
        rows=rows,
        note=(
            f"{facts.split.capitalize()}s pooled. {gained} of {plural(len(by_database), 'database')} gain."
            f"{carried}{predicts}"
        ),
    )


def difficulty(facts: Facts) -> Body | None:
    """The headline re-read under the subset rule and by difficulty."""
    if not facts.headline:
        return None
    rows: list[Cells] = []
    if all("subset" in row.rules for row in (*facts.rows(facts.bare), *facts.rows(facts.default))):
        subset = [effect for seed in facts.seeds for effect in _under_subset(facts, seed)]
        rows += [(f"Subset metric, per {facts.split}",), *map(_stratum, subset)]
    labelled = sorted(
        (pair for pair in facts.headline if pair.after.difficulty), key=lambda pair: _hardness(pair.after.difficulty)
    )
    strata = effects(labelled, lambda pair: pair.after.difficulty)
    if strata:
        rows += [(f"Difficulty, pooled over {facts.split}s (rule {facts.manifest.rule})",), *map(_stratum, strata)]
    return Body(
        columns=("Stratum", "n pairs", "No memory %", "Memory %", "Lift (pp)", "Fixed/broke", "p"),
        rows=tuple(rows),
        note="p is exact McNemar's, a diagnostic that treats pairs as independent.",
    )


def _under_subset(facts: Facts, seed: int) -> tuple[Effect, ...]:
    def read(rows: Sequence[Outcome]) -> list[Outcome]:
        return [replace(row, right=row.rules["subset"]) for row in rows if row.seed == seed]

    pairs = pair_up(read(facts.rows(facts.bare)), read(facts.rows(facts.default)))
    return effects(pairs, lambda _: f"{facts.split} {seed}")


def _stratum(effect: Effect) -> Cells:
    shown = (
        percent(effect.before),
        percent(effect.after),
        points(effect.delta_pp),
        f"{effect.fixed}/{effect.broke}",
        probability(effect.mcnemar_p),
    )
    return effect.name, str(effect.n), *shown


def _hardness(label: str) -> tuple[int, str]:
    levels = ("simple", "easy", "moderate", "medium", "challenging", "hard", "extra")
    return levels.index(label) if label in levels else len(levels), label


def data(facts: Facts) -> Body | None:
    """Held-out and collected questions per database."""
    rows = facts.rows(facts.default)
    held_out = Counter(row.database for row in rows)
    unique = Counter(database for database, _ in {(row.database, row.question) for row in rows})
    collected = Counter(row.database for row in facts.rows(facts.default, "collection"))
    body = [
        (name, number(count), number(unique[name]), number(collected[name]) if collected else NONE)
        for name, count in held_out.most_common()
    ]
    total = ("all", number(held_out.total()), number(unique.total()), number(collected.total()) if collected else NONE)
    columns = ("Database", f"Held out (all {facts.split}s)", "Held out (unique)", f"Collected (all {facts.split}s)")
    return Body(columns=columns, rows=(*body, total)) if body else None


def flips(facts: Facts) -> Body | None:
    """The fix/break ledger, per seed and across seeds."""
    pairs: Sequence[Pair] = facts.headline
    if not pairs:
        return None
    stable = stability(pairs)
    turned = plural(len(stable.both), "question")
    return Body(
        columns=("Scope", "n", "Fixed", "Broke", "Net", "McNemar p"),
        rows=(*_flips_by_seed(facts, pairs), *_stable_flips(facts, stable)),
        note=f"Stable: the same verdict in every {facts.split} where a question is held out, at least twice. "
        + (
            _shared(facts)
            if facts.shares_bare_answers
            else f"{turned} fixed under one {facts.split} and broken under another."
        )
        + _lasting(facts),
    )


def _lasting(facts: Facts) -> str:
    """Say how many changes are no luck of the rows; empty where databases cannot be generated anew."""
    if facts.ledger.lucky is None:
        return ""
    of_kind = {"fixes": fixes(facts.headline), "breaks": breaks(facts.headline)}
    kept = [f"{len(pairs) - facts.by_luck(pairs)} of {len(pairs)} {kind}" for kind, pairs in of_kind.items()]
    return f" Judged on further generated instances of their databases as well, {listed(kept)} stand."


def _flips_by_seed(facts: Facts, pairs: Sequence[Pair]) -> Iterator[Cells]:
    by_seed = (
        *effects(pairs, lambda pair: f"{facts.split} {pair.after.seed}"),
        *effects(pairs, lambda _: f"all {facts.split}s"),
    )
    for effect in by_seed:
        counts = (effect.n, effect.fixed, effect.broke)
        yield (effect.name, *map(str, counts), points(effect.net, 0), probability(effect.mcnemar_p))


def _stable_flips(facts: Facts, stable: Stability) -> Iterator[Cells]:
    fixed, broken = len(stable.stable_fixes), len(stable.stable_breaks)
    counts, churn = (stable.repeated, fixed, broken), (stable.churn_fixes, stable.churn_breaks)
    yield f"stable across {facts.split}s (questions)", *map(str, counts), points(fixed - broken, 0), NONE
    yield "churn (events)", NONE, *map(str, churn), points(churn[0] - churn[1], 0), NONE


def settings_per_seed(facts: Facts) -> Body | None:
    """Replay, retention and the rerun floor, seed by seed."""
    groups = {
        "Rerun without memory": facts.reruns,
        "Cross-question retention": facts.rows(facts.default, "retention"),
        "Exact-query replay": facts.rows(facts.default, "replay"),
    }
    if not any(groups.values()):
        return None
    rows = tuple(
        (name, number(len(rows)), per_seed(facts.by_seed(rows).values()), percent(percent_right(rows)))
        for name, rows in groups.items()
    )
    gain = effects(pair_up(facts.reruns, groups["Cross-question retention"]), lambda _: "retention")
    note = f"Retention against the rerun: fixed {gain[0].fixed}, broke {gain[0].broke}." if gain else ""
    seeds = "/".join(str(seed) for seed in facts.seeds)
    return Body(
        columns=("Setting", "n", f"% per {facts.split} ({seeds})", f"All {facts.split}s %"), rows=rows, note=note
    )


def paraphrases(facts: Facts) -> Body | None:
    """Tabulate banked questions in other words: with the own card, without it, and without any."""
    names = {
        "paraphrase": "own card eligible",
        "paraphrase-others": "own card removed",
        "paraphrase-none": "without memory",
    }
    answered = {setting: facts.rows(facts.default, setting) for setting in names}
    if not any(answered.values()):
        return None
    rows = []
    for setting, rows_of in answered.items():
        versus = facts.compare_sides(Side(facts.default.name, "paraphrase-none"), Side(facts.default.name, setting))
        gain = f"{points(versus.delta_pp)} pp, {judged(versus)}" if versus and setting != "paraphrase-none" else NONE
        shown = [row for row in rows_of if _shows_own_card(facts, row)]
        rows.append(
            (
                names[setting],
                number(len(rows_of)),
                percent(percent_right(rows_of)),
                gain,
                percent(100 * len(shown) / len(rows_of)) if rows_of and setting == "paraphrase" else NONE,
            )
        )
    columns = ("Asked in other words", "n", "EX %", "Against no memory", "Own card in the prompt, %")
    return Body(columns=columns, rows=tuple(rows), note="Each banked question in each of its paraphrases.")


def _shows_own_card(facts: Facts, row: Outcome) -> bool:
    return any(card.question_id == row.question for card in facts.window(facts.default, row))


def known_before(facts: Facts) -> Body | None:
    """Tabulate the lift on questions that an earlier study had asked, and on those that are new."""
    known = set(facts.ledger.known)
    if not known or not facts.headline:
        return None
    rows = []
    for name, chosen in (("asked before", True), ("new", False)):
        pairs = [pair for pair in facts.headline if (pair.after.question in known) == chosen]
        if not any(pair.evaluable for pair in pairs):
            continue
        result = compare(to_outcomes(pairs), method=facts.method)
        lift = f"{points(result.delta_pp)} pp, {judged(result)}"
        rows.append((name, number(result.n), percent(result.a), percent(result.b), lift))
    columns = ("Questions", "Pairs", "No memory %", "Memory %", "Lift")
    note = "Of questions that were asked before, the designers of this study knew how memory did on them."
    return Body(columns=columns, rows=tuple(rows), note=note)


SETTINGS = {"transfer": "as it stands", "dialogue": "read after the turns before"}
LAST_TURN = 4
"""Turns from here on are counted together."""


def dialogue_table(facts: Facts) -> Body | None:
    """Tabulate question match, dialogue match and match by turn, for each arm with context and without."""
    turns = facts.ledger.turns
    if not turns:
        return None
    rows = []
    for arm in facts.arms.values():
        for setting, how in SETTINGS.items():
            asked = [row for row in facts.rows(arm, setting) if row.question in turns]
            if asked:
                by_turn = [_of_turn(asked, turns, place) for place in range(1, LAST_TURN + 1)]
                whole = _whole(asked, turns)
                figures = (percent_right(asked), _percent(whole), *by_turn)
                cells = (NONE if figure is None else percent(figure) for figure in figures)
                rows.append((arm.name, how, number(len(asked)), number(len(whole)), *cells))
    places = (*(f"Turn {place} %" for place in range(1, LAST_TURN)), f"Turn {LAST_TURN} on %")
    columns = ("Arm", "Question", "Questions", "Dialogues", "Question match %", "Dialogue match %", *places)
    note = (
        "By execution. A dialogue matches where every one of its questions does whose gold runs. Read after the turns"
        " before: the model rewrites the question from the earlier ones and its own SQL for them, never gold's."
    )
    return Body(columns=columns, rows=tuple(rows), note=note)


def _of_turn(rows: Sequence[Outcome], turns: dict[str, tuple[str, int]], place: int) -> float | None:
    return percent_right([row for row in rows if min(turns[row.question][1], LAST_TURN) == place])


def _whole(rows: Sequence[Outcome], turns: dict[str, tuple[str, int]]) -> list[bool]:
    """Tell of each dialogue, under each split, whether all of it is right."""
    dialogues: dict[tuple[int, str], list[bool]] = {}
    for row in rows:
        if row.kind not in UNEVALUABLE:
            dialogues.setdefault((row.seed, turns[row.question][0]), []).append(row.right)
    return [all(verdicts) for verdicts in dialogues.values()]


def _percent(verdicts: Sequence[bool]) -> float | None:
    return 100 * sum(verdicts) / len(verdicts) if verdicts else None
