"""The pages as one piece: login, static files, errors, and the routers of the rest."""

from http.client import responses
from typing import Annotated

from fastapi import APIRouter, FastAPI, Form, Request
from starlette.responses import RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from sqlcrystal.interfaces.server.access import COOKIE, from_this_origin
from sqlcrystal.interfaces.server.replies import Working
from sqlcrystal.interfaces.web.rendering import FOLDER, page

router = APIRouter(include_in_schema=False)
API = ("/api/", "/v1/", "/mcp", "/metrics", "/health", "/ready", "/openapi.json")
TITLES = {401: "Log in", 403: "Not allowed", 404: "Not here", 422: "A mistake", 429: "Too many requests", 503: "Busy"}


HINTS = {
    403: "Your token does not reach this. The person who runs the server can give you one that does.",
    404: "The address may be misspelt, or what it named was deleted.",
    429: "Wait a minute, then load the page again.",
    503: "The server is busy or stopping. Load the page again in a moment.",
}
"""What a person can do next."""


def add_pages(app: FastAPI) -> None:
    """Every page, under the gate like the rest."""
    from sqlcrystal.interfaces.web import (
        pages_ask,
        pages_bank,
        pages_card,
        pages_definitions,
        pages_demo,
        pages_learn,
        pages_queue,
        pages_revoke,
        pages_rows,
        pages_settings,
        pages_studies,
        pages_value,
        pages_verdicts,
    )

    app.mount("/static", StaticFiles(directory=FOLDER / "static"), name="static")
    asking = (pages_ask, pages_verdicts, pages_rows, pages_queue, pages_learn)
    for module in (
        *asking,
        pages_definitions,
        pages_bank,
        pages_revoke,
        pages_card,
        pages_value,
        pages_studies,
        pages_settings,
        pages_demo,
    ):
        app.include_router(module.router)
    app.include_router(router)


def wants_page(request: Request) -> bool:
    """Tell whether an error is shown as a page: to a browser, outside the interface, and not to the script."""
    by_script = "x-fragment" in request.headers
    return not by_script and not request.url.path.startswith(API) and "text/html" in request.headers.get("accept", "")


def error_page(request: Request, status: int, detail: object) -> Response:
    """Tell what went wrong, and where to go on."""
    said = str(detail)
    return page(
        request,
        "error.html",
        status=status,
        title=TITLES.get(status, "Not done"),
        detail="" if said == responses.get(status) else said,  # which says no more than the title
        hint=HINTS.get(status, ""),
    )


@router.get("/login")
async def login_page(request: Request) -> Response:
    """Tell where a token is given."""
    return page(request, "login.html", refused="")


@router.post("/login")
async def login(request: Request, work: Working, token: Annotated[str, Form(max_length=200)] = "") -> Response:
    """Keep a token that stands in a cookie that scripts cannot read and other sites cannot send."""
    holder = await work.read(lambda: work.crystal.recognise(token.strip()))
    if holder is None or not from_this_origin(request):
        refused = "This token is not known, was revoked, or its time is over."
        return page(request, "login.html", status=401, refused=refused)
    reply = RedirectResponse("/demo" if work.settings.demo else "/", status_code=303)
    reply.set_cookie(
        COOKIE,
        token.strip(),
        max_age=int(work.settings.session_hours * 3600),
        httponly=True,
        samesite="strict",
        secure=work.settings.secure_cookie or request.url.scheme == "https",
        path="/",
    )
    return reply


@router.post("/logout")
async def logout() -> Response:
    """Forget the token."""
    reply = RedirectResponse("/login", status_code=303)
    reply.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return reply
