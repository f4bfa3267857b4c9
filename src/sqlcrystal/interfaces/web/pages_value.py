"""The worth of memory: in service, per database, over time and by card; and in studies, whose reports are opened."""

import io
import json
import mimetypes
from csv import writer
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query, Request
from markupsafe import Markup
from starlette.responses import FileResponse, RedirectResponse, Response

from sqlcrystal.bank import Scope
from sqlcrystal.errors import NotFound
from sqlcrystal.interfaces.server.access import Door
from sqlcrystal.interfaces.server.replies import Working
from sqlcrystal.interfaces.server.work import Work
from sqlcrystal.interfaces.web.rendering import chosen_database, databases_of, page, waiting_count, waiting_in
from sqlcrystal.interfaces.web.tables import MOST_DOTS, Frame, Size, both_sizes, drawing
from sqlcrystal.serving.value import UNKNOWN, ValueFigure, arms, figures, verdict_rates
from sqlcrystal.types import Card, CardStatus

if TYPE_CHECKING:
    from sqlcrystal.serving.value import CardValue, Look, Value

router = APIRouter(include_in_schema=False)
HEIGHT, LEFT = 220, 56
MOST_SPOTS = 200
CERTAIN_FROM = 3
"""The first third of the looks is so unsure that its band would flatten the rest; it is drawn to the frame's edge."""


@router.get("/value")
async def value_page(
    request: Request, door: Door, work: Working, database: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    """Tiles, the lift over time, the arms, and the cards by how their answers fared."""
    name = await work.read(lambda: chosen_database(request, door, database, Scope.ASK))
    shown = await work.read(lambda: [_shown(door, value) for value in door.value(name) if value.answers])
    waiting = await work.read(lambda: len(waiting_in(door, name)))
    return page(
        request,
        "value.html",
        database=name,
        databases=databases_of(door, Scope.ASK),
        databases_shown=shown,
        waiting_count=waiting,
        may_manage=door.caller.allows(name, Scope.MANAGE),
        now=datetime.now(UTC),
    )


@router.post("/value/measure")
async def measure(
    door: Door,
    work: Working,
    database: Annotated[str, Form(max_length=200)],
    kind: Annotated[str, Form(max_length=40)],
) -> Response:
    """Measure memory from now on in another way."""
    await work.write(lambda: door.measure(kind, database))
    return RedirectResponse("/value?" + urlencode({"database": database}) + "#measuring", status_code=303)


@router.get("/value/cards.csv")
async def cards_file(door: Door, work: Working, database: Annotated[str, Query(max_length=200)] = "") -> Response:
    """The cards of a database with how their answers fared, for a spreadsheet."""

    def read() -> str:
        out = io.StringIO()
        rows = writer(out, lineterminator="\n")
        rows.writerow(["card", "used", "right", "wrong", "effect_pp", "says"])
        for value in door.value(database or None):
            rows.writerows(
                [each.card, each.used, each.right, each.wrong, each.effect_pp, each.says] for each in value.cards
            )
        return out.getvalue()

    headers = {"Content-Disposition": 'attachment; filename="cards.csv"'}
    return Response(await work.read(read), media_type="text/csv; charset=utf-8", headers=headers)


def _shown(door: Door, value: "Value") -> dict[str, Any]:
    share = door.database_state(value.database).hold_out
    looks = door.trend(value.database)
    judged = door.judged(value.database)
    told = [figure for figure in figures(value) if figure.figure != UNKNOWN]
    known = {str(card.id): card for card in door.cards(value.database)}
    held = (
        f"Held out: {100 * share:g} % of questions."
        if share
        else "No questions are held out, so no lift can be measured."
    )
    return {
        "database": value.database,
        "share_words": held,
        "says": value.says,
        "warnings": value.warnings,
        "tiles": [*told[:1], _right(judged), *told[1:]],
        "open": [figure for figure in figures(value) if figure.figure == UNKNOWN],
        "measured": bool(share),
        "choices": door.measuring(value.database),
        "cut": any(look.high_pp > _frame(looks)[1] or look.low_pp < _frame(looks)[0] for look in looks),
        "chart": both_sizes(lambda size: _chart(size, looks)) if len(looks) > 1 else None,
        "right_chart": both_sizes(lambda size: _right_chart(size, judged)) if len(judged) > 1 else None,
        "rate_words": verdict_rates(value),
        "arms": arms(value) if any(arm.answers for arm in value.arms.values()) else [],
        "groups": [
            (name, [_card(each, known.get(each.card)) for each in value.cards if each.says == says])
            for says, name in (("harms", "Cards that harm"), ("earns", "Cards that earn"), ("unclear", "Not clear yet"))
        ],
    }


def _card(each: "CardValue", card: Card | None) -> dict[str, Any]:
    return {
        "id": each.card,
        "question": card.question.text if card else "(deleted)",
        "used": each.used,
        "right": each.right,
        "wrong": each.wrong,
        "effect": "–" if each.effect_pp is None else f"{each.effect_pp:+.1f}",
        "active": card is not None and card.status is CardStatus.ACTIVE,
    }


def _right(judged: list[bool]) -> ValueFigure:
    """Say what is known from the first verdict on, without any hold-out."""
    return ValueFigure("Right so far", f"{sum(judged):,} of {len(judged):,}", "of the answers that were judged")


def _right_chart(size: Size, judged: list[bool]) -> Markup:
    """The share of right answers, verdict by verdict."""
    size = size._replace(width=1160 if size.shown == "at-desk" else size.width)
    frame = Frame(size, height=HEIGHT, left=LEFT, head=12, low=0.0, high=100.0, steps=len(judged) - 1)
    shares = [100 * count / (place + 1) for place, count in enumerate(accumulate(judged))]
    every = max(1, len(shares) // MOST_SPOTS)
    spots = [(place, share) for place, share in enumerate(shares) if place % every == 0 or place == len(shares) - 1]
    few = len(spots) <= MOST_DOTS
    line = " ".join(f"{frame.across(place):.1f},{frame.down(share):.1f}" for place, share in spots)
    parts = [
        *frame.grid(),
        Markup('<polyline class="line" points="{}"/>').format(line),
        *frame.ends("first verdict", f"{len(judged):,} verdicts"),
        *(
            frame.spot(place, f"{place + 1:,} verdicts", [("right", f"{share:.0f} %")], [(0, share)] if few else [])
            for place, share in spots
        ),
    ]
    return drawing(f"{shares[-1]:.0f} % right after {len(judged):,} verdicts", size, HEIGHT, parts)


def _look_words(look: "Look") -> str:
    return f"{look.lift_pp:+.1f} ({look.low_pp:+.1f} to {look.high_pp:+.1f})"


def _frame(looks: "list[Look]") -> tuple[float, float]:
    """Tell from which to which lift the drawing goes."""
    later = looks[len(looks) // CERTAIN_FROM :]
    return min(-1.0, *(look.low_pp for look in later)), max(1.0, *(look.high_pp for look in later))


def _chart(size: Size, looks: "list[Look]") -> Markup:
    low, high = _frame(looks)
    first, most = looks[0].verdicts, looks[-1].verdicts
    size = size._replace(width=1160 if size.shown == "at-desk" else size.width)
    frame = Frame(size, height=HEIGHT, left=LEFT, head=12, low=low, high=high, steps=max(1, most - first))

    def spot(look: "Look", points: float) -> str:
        return f"{frame.across(look.verdicts - first):.1f},{frame.down(min(high, max(low, points))):.1f}"

    band = [spot(look, look.high_pp) for look in looks] + [spot(look, look.low_pp) for look in reversed(looks)]
    parts = [
        Markup('<polygon class="band" points="{}"/>').format(" ".join(band)),
        *frame.grid(signed=True),
        Markup('<polyline class="line" points="{}"/>').format(" ".join(spot(look, look.lift_pp) for look in looks)),
        *frame.ends(f"{first:,} verdicts", f"{most:,} verdicts"),
    ]
    parts += [
        frame.spot(look.verdicts - first, f"{look.verdicts:,} verdicts", [("lift", _look_words(look))])
        for look in looks
    ]
    last = looks[-1]
    title = (
        f"Lift {last.lift_pp:+.1f} points after {most:,} verdicts, interval {last.low_pp:+.1f} to {last.high_pp:+.1f}"
    )
    return drawing(title, size, HEIGHT, parts)


# A report is a page of its own, with its style inside: it may look as it likes and do nothing.
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; sandbox; frame-ancestors 'self'"
FIGURES = (
    ("Verdict", "verdict"),
    ("P_0, no memory", "p0"),
    ("P_M, with cards", "pm"),
    ("P_K, repaired on demand", "pk"),
    ("Lift, points", "lift_pp"),
    ("Lift, 95 % interval", "lift_ci_pp"),
    ("CR", "cr"),
    ("CR, 95 % interval", "cr_ci"),
    ("Fixed", "fixed"),
    ("Broke", "broke"),
    ("Questions held out", "n_heldout"),
    ("Databases", "n_databases"),
    ("Cards", "cards"),
)


@router.get("/studies")
async def studies_page(
    request: Request, door: Door, work: Working, study: Annotated[list[str] | None, Query(max_length=20)] = None
) -> Response:
    """Every study with a report; the chosen ones side by side."""
    door.caller.require_owner()
    folders = _folders(work)
    studies = await work.read(lambda: [each for folder in folders for each in _studies(folder)])
    compared = [each for each in studies if each["name"] in (study or [])]
    rows = [
        (name, [_figure(each["summary"].get(key), signed="lift" in key) for each in compared]) for name, key in FIGURES
    ]
    return page(
        request,
        "studies.html",
        waiting_count=await work.read(lambda: waiting_count(request, door)),
        studies=studies,
        chosen=study or [],
        compared=compared,
        rows=rows,
        folder=work.settings.studies,
    )


@router.get("/studies/{name}")
async def report_page(request: Request, name: str, door: Door, work: Working) -> Response:
    """Show a report under the bar of the app, with the way back."""
    door.caller.require_owner()
    if all(_inside(folder, name, "index.html") is None for folder in _folders(work)):
        raise NotFound("no such report")
    waiting = await work.read(lambda: waiting_count(request, door))
    return page(request, "study.html", name=name, waiting_count=waiting)


@router.get("/studies/{name}/{file:path}")
async def report_file(name: str, file: str, door: Door, work: Working) -> Response:
    """Give a file of a report."""
    door.caller.require_owner()
    found = next((path for folder in _folders(work) if (path := _inside(folder, name, file))), None)
    if found is None:
        raise NotFound("no such report")
    media = mimetypes.guess_type(found.name)[0] or "application/octet-stream"
    return FileResponse(found, media_type=media, headers={"Content-Security-Policy": REPORT_POLICY})


def _folders(work: Work) -> list[Path]:
    """Tell where runs lie: the folder of the settings, and in the demo that of the bundled study."""
    bundled: Path | None = getattr(work.crystal, "reports", None)
    return [Path(work.settings.studies), *([bundled] if bundled else [])]


def _inside(folder: Path, name: str, file: str) -> Path | None:
    """A file of a run's report, or nothing where a name leads out of it."""
    root = (folder / name / "report").resolve()
    found = (root / file).resolve()
    safe = root.is_relative_to(folder.resolve()) and found.is_relative_to(root)
    return found if safe and found.is_file() else None


def _studies(folder: Path) -> list[dict[str, Any]]:
    found = []
    for summary in sorted(folder.glob("*/summary.json")):
        if not (summary.parent / "report" / "index.html").is_file():
            continue
        try:
            told = json.loads(summary.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(told, dict):
            known = {key: str(told.get(key, "")) for key in ("model", "benchmark")}
            found.append({"name": summary.parent.name, "summary": told, **known})
    return found


def _figure(value: Any, *, signed: bool) -> str:
    if value is None:
        return "–"
    if isinstance(value, list):
        return " to ".join(_figure(each, signed=signed) for each in value)
    return f"{value:{'+' if signed else ''}.1f}" if isinstance(value, float) else str(value)
