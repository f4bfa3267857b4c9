"""Value: what memory is worth in service, per database, and which cards earn it."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from sqlcrystal.bank import Traffic
from sqlcrystal.interfaces.server.access import Calling
from sqlcrystal.interfaces.server.reach import known_card
from sqlcrystal.interfaces.server.replies import Working
from sqlcrystal.interfaces.server.work import Work
from sqlcrystal.interfaces.web.rendering import chosen_database, databases_of, page

router = APIRouter(include_in_schema=False)


@router.get("/value")
async def value_page(
    request: Request, caller: Calling, work: Working, database: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    """Tiles, verdicts by arm, and the cards by how their answers fared."""
    name = chosen_database(request, work, caller, database)
    shown = await work.call(lambda: [_value(work, name)])
    return page(
        request,
        "value.html",
        database=name,
        databases=databases_of(work, caller),
        databases_shown=[value for value in shown if value is not None],
    )


def _value(work: Work, database: str) -> dict[str, Any] | None:
    traffic = {arm.memory: arm for arm in work.crystal.store.answers.traffic(database=database)}
    if not any(arm.judged for arm in traffic.values()):
        return None
    with_cards, held_out = traffic.get(True), traffic.get(False)
    entry = work.crystal.desk.team.databases.get(database)
    share = entry.hold_out if entry else 0.0
    return {
        "database": database,
        "share_words": f"Held out: {share:.0%} of questions. " if share else "No questions are held out. ",
        "as_of": "",
        "tiles": _tiles(with_cards, held_out),
        "chart": None,
        "chart_words": "",
        "verdict_words": "Verdicts: "
        + ", ".join(filter(None, (_rate("with memory", with_cards), _rate("held out", held_out))))
        + ".",
        "cards": _cards(work, database),
    }


def _rate(name: str, arm: Traffic | None) -> str:
    return f"{name} {arm.judged:,} of {arm.answers:,} answers, {arm.right:,} right" if arm else ""


def _tiles(with_cards: Traffic | None, held_out: Traffic | None) -> list[dict[str, str]]:
    arms = [arm for arm in (with_cards, held_out) if arm is not None]
    answers, judged = sum(arm.answers for arm in arms), sum(arm.judged for arm in arms)
    right, replayed = sum(arm.right for arm in arms), sum(arm.replayed for arm in arms)
    tokens = sum(arm.prompt_tokens + arm.completion_tokens for arm in arms)
    return [
        {
            "name": "Right at once",
            "figure": f"{100 * right / judged:.1f} %" if judged else "–",
            "words": f"{right:,} of {judged:,} answers with a verdict",
        },
        {"name": "Answers", "figure": f"{answers:,}", "words": f"{replayed:,} replayed without a model call"},
        {
            "name": "Cost per answer",
            "figure": f"{tokens / answers:,.0f}" if answers else "–",
            "words": "tokens, prompt and reply together",
        },
    ]


def _cards(work: Work, database: str) -> list[dict[str, Any]]:
    effects = work.crystal.store.answers.effects(database)[:50]
    return [
        {
            "id": effect.card,
            "question": card.question.text if (card := known_card(work.crystal, effect.card)) else "(deleted)",
            "used": effect.used,
            "right": effect.right,
            "wrong": effect.wrong,
        }
        for effect in sorted(effects, key=lambda each: (-each.wrong, -each.used))
    ]
