"""From work to facts: the outcome of each question, and the cards of each bank."""

from collections.abc import Iterable, Sequence
from functools import cache

from sqlcrystal.scoring.verdicts import RULES
from sqlcrystal.study.ledger import BankedCard, Outcome
from sqlcrystal.study.work import Answered, Asked, Collected, Served, Trajectory, Workshop
from sqlcrystal.study.world import UNEVALUABLE, Judgement
from sqlcrystal.types import CardId, Episode
from sqlcrystal.writing.modes import modes

REFUSED = Judgement(dict.fromkeys(RULES, False), UNEVALUABLE)


# Arms share most of their cards, and telling modes apart is the slowest step of an audit.
_modes = cache(modes)


def outcome(
    workshop: Workshop,
    *,
    arm: str,
    setting: str,
    seed: int,
    answered: Answered,
    trajectory: Trajectory | None = None,
    writing: Sequence[Asked] = (),
    run: int = 0,
) -> Outcome:
    """A row of the results: the final SQL is the last candidate of a repair, or else the attempt's."""
    question, rule = answered.question, workshop.study.rule
    first_sql = answered.attempt.sql if answered.attempt else None
    first = workshop.world.judge(question, first_sql) if answered.attempt else REFUSED
    rounds = trajectory.rounds if trajectory else ()
    sql = next((spent.sql for spent in reversed(rounds) if spent.sql is not None), first_sql)
    final = workshop.world.judge(question, sql) if rounds and answered.attempt else first
    calls = [*answered.calls, *(trajectory.calls if trajectory else ()), *writing]
    return Outcome(
        arm=arm,
        setting=setting,
        seed=seed,
        question=question.id,
        database=question.database,
        difficulty=question.difficulty,
        right=final.rules[rule],
        first_right=first.rules[rule],
        rules=final.rules,
        kind=final.named(rule),
        sql=sql,
        first_sql=first_sql,
        cards=tuple(one.card.id for one in answered.retrieved),
        scores=tuple(one.score for one in answered.retrieved),
        calls=len(calls),
        rounds=len(rounds),
        probes=sum(len(spent.probes) for spent in rounds),
        prompt_tokens=sum(one.completion.prompt_tokens for one in calls),
        completion_tokens=sum(one.completion.completion_tokens for one in calls),
        seconds=round(sum(one.completion.seconds for one in calls), 6),
        run=run,
    )


def banked_cards(
    workshop: Workshop, *, arm: str, seed: int, served: Served, collection: Iterable[Collected]
) -> list[BankedCard]:
    """The cards of an arm's bank as they are shown, each with the audit's bit."""
    episodes: dict[CardId, Episode] = {}
    for one in collection:
        if one.card is not None and one.trajectory is not None and one.trajectory.episode is not None:
            episodes[one.card.id] = one.trajectory.episode
    rows = []
    for database in served.shown.databases():
        dialect = workshop.world.database(database).dialect
        for card in served.shown.cards(database):
            episode = episodes.get(card.id)
            repaired = episode is not None and bool(episode.rounds)
            rows.append(
                BankedCard(
                    arm=arm,
                    seed=seed,
                    id=card.id,
                    database=database,
                    question_id=card.question.id,
                    question=card.question.text,
                    sql=card.sql,
                    text=card.text,
                    tokens=card.tokens,
                    source=card.source,
                    signal=card.admission.signal,
                    right=workshop.world.judge(card.question, card.sql).rules[workshop.study.rule],
                    modes=_modes(episode.attempt.sql, episode.sql, dialect) if episode and repaired else (),
                )
            )
    return rows
