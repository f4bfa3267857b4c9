"""Studies: the reports that lie in a folder, opened or side by side."""

import json
import mimetypes
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import FileResponse, Response

from sqlcrystal.errors import NotFound
from sqlcrystal.interfaces.server.access import Door
from sqlcrystal.interfaces.server.replies import Working
from sqlcrystal.interfaces.server.work import Work
from sqlcrystal.interfaces.web.rendering import page, waiting_count

router = APIRouter(include_in_schema=False)
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
