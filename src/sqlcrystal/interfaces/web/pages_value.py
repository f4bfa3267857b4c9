"""Value: what memory is worth in service, per database, over time, and which cards earn it."""

import io
from csv import writer
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from markupsafe import Markup
from starlette.responses import Response

from sqlcrystal.interfaces.server.access import Calling
from sqlcrystal.interfaces.server.reach import database_for, known_card
from sqlcrystal.interfaces.server.replies import Working
from sqlcrystal.interfaces.server.work import Work
from sqlcrystal.interfaces.web.charts import drawing
from sqlcrystal.interfaces.web.rendering import chosen_database, databases_of, page, waiting_in
from sqlcrystal.serving.figures import arms, figures
from sqlcrystal.serving.trend import Look, trend

if TYPE_CHECKING:
    from sqlcrystal.serving.value import CardValue, Value

router = APIRouter(include_in_schema=False)
WIDTH, HEIGHT, LEFT, BOTTOM = 960, 260, 64, 32
SAYS = {"earns": "confirmed", "harms": "rejected", "unclear": "waiting"}


@router.get("/value")
async def value_page(
    request: Request, caller: Calling, work: Working, database: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    """Tiles, the lift over time, the arms, and the cards by how their answers fared."""
    name = chosen_database(request, work, caller, database)
    shown = await work.call(lambda: [_shown(work, value) for value in work.crystal.value(name) if value.answers])
    waiting = await work.call(lambda: len(waiting_in(work, caller, name)))
    seen = databases_of(work, caller)
    return page(request, "value.html", database=name, databases=seen, databases_shown=shown, waiting_count=waiting)


@router.get("/value/cards.csv")
async def cards_file(caller: Calling, work: Working, database: Annotated[str, Query(max_length=200)] = "") -> Response:
    """The cards of a database with how their answers fared, for a spreadsheet."""

    def read() -> str:
        name = database_for(work.crystal, caller, database or None)
        out = io.StringIO()
        rows = writer(out, lineterminator="\n")
        rows.writerow(["card", "used", "right", "wrong", "effect_pp", "says"])
        for value in work.crystal.value(name):
            rows.writerows(
                [each.card, each.used, each.right, each.wrong, each.effect_pp, each.says] for each in value.cards
            )
        return out.getvalue()

    headers = {"Content-Disposition": 'attachment; filename="cards.csv"'}
    return Response(await work.call(read), media_type="text/csv; charset=utf-8", headers=headers)


def _shown(work: Work, value: "Value") -> dict[str, Any]:
    entry = work.crystal.desk.team.databases.get(value.database)
    share = entry.hold_out if entry else 0.0
    looks = trend(work.crystal.store, value.database)
    held = f"Held out: {share:.0%} of questions." if share else "No questions are held out, so no lift can be measured."
    return {
        "database": value.database,
        "share_words": held,
        "says": value.says,
        "tiles": figures(value),
        "chart": _chart(looks) if len(looks) > 1 else None,
        "chart_words": "Lift of memory in points (line) with its interval (band) after each verdict. "
        "Looked at any day, the interval holds.",
        "arms": arms(value) if any(arm.answers for arm in value.arms.values()) else [],
        "cards": [_card(work, each) for each in value.cards],
    }


def _card(work: Work, each: "CardValue") -> dict[str, Any]:
    card = known_card(work.crystal, each.card)
    return {
        "id": each.card,
        "question": card.question.text if card else "(deleted)",
        "used": each.used,
        "right": each.right,
        "wrong": each.wrong,
        "effect": "–" if each.effect_pp is None else f"{each.effect_pp:+.1f}",
        "says": each.says,
        "state": SAYS.get(each.says, "waiting"),
    }


def _chart(looks: list[Look]) -> Markup:
    low, high = min(-1.0, *(look.low_pp for look in looks)), max(1.0, *(look.high_pp for look in looks))
    most = looks[-1].verdicts

    def across(look: Look) -> float:
        first = looks[0].verdicts
        return LEFT + (WIDTH - LEFT - 16) * (look.verdicts - first) / max(1, most - first)

    def down(points: float) -> float:
        return 8 + (HEIGHT - BOTTOM - 8) * (high - points) / (high - low)

    band = [f"{across(look):.1f},{down(look.high_pp):.1f}" for look in looks]
    band += [f"{across(look):.1f},{down(look.low_pp):.1f}" for look in reversed(looks)]
    line = " ".join(f"{across(look):.1f},{down(look.lift_pp):.1f}" for look in looks)
    parts = [
        Markup('<polygon class="band" points="{}"/>').format(" ".join(band)),
        Markup('<line class="axis" x1="{}" x2="{}" y1="{y:.1f}" y2="{y:.1f}"/>').format(LEFT, WIDTH - 16, y=down(0)),
        Markup('<polyline class="line" points="{}"/>').format(line),
        Markup('<text x="{}" y="{:.1f}" text-anchor="end">0</text>').format(LEFT - 8, down(0) + 4),
        Markup('<text x="{}" y="16" text-anchor="end">{:+.0f}</text>').format(LEFT - 8, high),
        Markup('<text x="{}" y="{}" text-anchor="end">{:+.0f}</text>').format(LEFT - 8, HEIGHT - BOTTOM + 4, low),
        Markup('<text class="muted" x="{}" y="{}">{:,} verdicts</text>').format(LEFT, HEIGHT - 8, looks[0].verdicts),
        Markup('<text class="muted" x="{}" y="{}" text-anchor="end">{:,} verdicts</text>').format(
            WIDTH - 16, HEIGHT - 8, most
        ),
    ]
    last = looks[-1]
    title = (
        f"Lift {last.lift_pp:+.1f} points after {most:,} verdicts, interval {last.low_pp:+.1f} to {last.high_pp:+.1f}"
    )
    return drawing(title, HEIGHT, parts, width=WIDTH)
