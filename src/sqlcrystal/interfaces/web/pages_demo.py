"""The demo's own pages: its story, what was recorded, and the way back to the beginning."""

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, cast
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response

from sqlcrystal.errors import NotFound
from sqlcrystal.interfaces.server.access import Door
from sqlcrystal.interfaces.server.replies import Working
from sqlcrystal.interfaces.server.work import Work
from sqlcrystal.interfaces.web.beside import changed_lines
from sqlcrystal.interfaces.web.rendering import (
    DATABASE_COOKIE,
    chosen_database,
    databases_of,
    fragment,
    page,
    waiting_in,
)
from sqlcrystal.interfaces.web.text import filtered_on, pretty_sql
from sqlcrystal.interfaces.web.views import AnswerView

if TYPE_CHECKING:
    from sqlcrystal.serving.demo import DemoCrystal

router = APIRouter(include_in_schema=False)
Text = Annotated[str, Query(max_length=4000)]


class StoryStep(NamedTuple):
    """One step of the story: what to do, what will be seen, where, and whether it was done."""

    title: str
    words: str
    links: tuple[tuple[str, str], ...]
    done: bool = False


@router.get("/demo")
async def demo_page(request: Request, door: Door, work: Working) -> Response:
    """One question without memory and with it, and five steps through the rest."""
    from sqlcrystal.serving.demo import STORY_DATABASE

    demo = _demo(door, work)
    values = await work.read(lambda: _story(demo))
    waiting = await work.read(lambda: len(waiting_in(door, STORY_DATABASE)))
    reply = page(
        request,
        "demo.html",
        database=STORY_DATABASE,
        databases=databases_of(door),
        database_action="/",
        waiting_count=waiting,
        **values,
    )
    reply.set_cookie(DATABASE_COOKIE, quote(STORY_DATABASE, safe=""), samesite="strict", httponly=True)
    return reply


@router.get("/demo/questions")
async def questions_page(request: Request, door: Door, work: Working, database: str = "") -> Response:
    """Tell what was recorded, and how to get a live model."""
    demo, name = _demo(door, work), chosen_database(request, door, database)
    return page(
        request,
        "demo_questions.html",
        database=name,
        databases=databases_of(door),
        questions=demo.recorded_questions(name),
        waiting_count=await work.read(lambda: len(waiting_in(door, name))),
    )


@router.get("/demo/near")
async def near(door: Door, work: Working, question: Text, database: Text = "") -> Response:
    """Recorded questions like one that was not, for the script to offer."""
    name = database if database in databases_of(door) else ""
    demo = _demo(door, work)
    return fragment("_near.html", database=name, offers=await work.read(lambda: demo.near_questions(question, name)))


@router.post("/demo/reset")
async def reset(door: Door, work: Working) -> Response:
    """Begin the demo again."""
    door.caller.require_owner()
    await work.write(_demo(door, work).reset)
    return RedirectResponse("/demo", status_code=303)


def _demo(door: Door, work: Work) -> "DemoCrystal":
    if not work.settings.demo:
        raise NotFound("this is not the demo")
    return cast("DemoCrystal", door)


def _story(demo: "DemoCrystal") -> dict[str, Any]:
    answers = demo.opening()
    views = [AnswerView(demo, demo.answer_story(name)) for name in answers] if answers else []
    marks = [filtered_on(view.sql, view.dialect) for view in views]
    return {
        "pair": list(zip(("Without memory", "With memory"), views, marks, strict=True)) if views else [],
        "card": _card(demo, views[1], marks[1]) if views else None,
        "steps": _steps(demo),
    }


def _card(demo: "DemoCrystal", view: AnswerView, literals: list[str]) -> dict[str, Any]:
    """The nearest card that holds a literal of the right answer: what the model could not have known."""
    entries = [demo.card(used["id"]) for used in view.cards]
    telling = next((each for each in entries if any(literal in each.card.sql for literal in literals)), entries[0])
    first = telling.episode.attempt.sql if telling.episode is not None else ""
    final = pretty_sql(telling.card.sql, view.dialect)
    return {
        "id": telling.card.id,
        "question": telling.card.question.text,
        "lines": changed_lines(pretty_sql(first or "", view.dialect), final),
    }


def _steps(demo: "DemoCrystal") -> list[StoryStep]:
    from sqlcrystal.serving.demo import OTHER_DATABASE, STORY, STORY_DATABASE

    opening, sibling, waiting = demo.texts[STORY.opening], demo.texts[STORY.sibling], demo.waiting_story()
    banked = any(card.question.text == opening for card in demo.cards(STORY_DATABASE))
    asked = demo.was_asked(sibling)
    queue = {"database": OTHER_DATABASE} | ({"answer": waiting} if waiting else {})
    return [
        StoryStep(
            "Ask it, and confirm the answer",
            "The cards that helped stand beside it. Your word makes it a card of its own: asked again, it is replayed "
            "without a model.",
            ((f"Ask {STORY_DATABASE}", _asking(STORY_DATABASE, opening)),),
            banked,
        ),
        StoryStep(
            "Ask another question",
            "Nobody asked this one before. The cards of other questions still help: “on leave” is stored as 'L'.",
            (("Ask another", _asking(STORY_DATABASE, sibling)),),
            asked,
        ),
        StoryStep(
            "Reject a wrong answer, and take its repair",
            f"In {OTHER_DATABASE} an answer without memory waits in the queue, and it is wrong. Reject it: a repair "
            "looks at the column, finds how the database says “current”, and proposes new SQL. Confirm that.",
            (("Open the queue", "/queue?" + urlencode(queue)),),
            not waiting,
        ),
        StoryStep(
            "See what is kept, and what it is worth",
            "The bank lists every card with who vouched for it. Value compares answers with cards and without.",
            (("Bank", f"/bank?database={STORY_DATABASE}"), ("Value", f"/value?database={STORY_DATABASE}")),
        ),
        StoryStep(
            "For researchers: read the study",
            "The same model over ten databases and three draws of 180 new questions, with intervals.",
            (("Studies", "/studies"),),
        ),
    ]


def _asking(database: str, question: str) -> str:
    return "/?" + urlencode({"database": database, "question": question})
