"""Definitions: the terms of a database beside its cards, and in the queue those that wait for a person."""

import io
from collections.abc import Callable
from pathlib import PurePath
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, Query, Request, UploadFile
from msgspec import Struct
from starlette.responses import RedirectResponse, Response

from sqlcrystal.bank import Scope
from sqlcrystal.errors import DataError, Forbidden, NotFound, UserError
from sqlcrystal.interfaces.server.access import Door
from sqlcrystal.interfaces.server.api import Id
from sqlcrystal.interfaces.server.replies import Working
from sqlcrystal.interfaces.server.work import Work
from sqlcrystal.interfaces.web.rendering import chosen_database, databases_of, page, proposed_terms, waiting_in
from sqlcrystal.serving.documents import DefinitionDocument, DefinitionsImported
from sqlcrystal.types import Card, CardStatus

router = APIRouter(include_in_schema=False)
Name = Annotated[str, Query(max_length=200)]
DatabaseField = Annotated[str, Form(max_length=200)]
APART = ";"
"""Between synonyms, and between tables, in a field."""


class FilledForm(Struct, frozen=True):
    """The fields of a definition as a form sends them."""

    term: str = ""
    sql: str = ""
    meaning: str = ""
    synonyms: str = ""
    tables: str = ""

    def parts(self) -> dict[str, Any]:
        """Give them as the door takes them."""
        several = {name: [each.strip() for each in getattr(self, name).split(APART) if each.strip()] for name in _LISTS}
        return {"term": self.term, "sql": self.sql, "meaning": self.meaning, **several}

    @classmethod
    def of(cls, known: Any) -> "FilledForm":
        """Fill a form with what a document says."""
        several = {name: f"{APART} ".join(getattr(known, name)) for name in _LISTS}
        return cls(term=known.term, sql=known.sql, meaning=known.meaning, **several)


_LISTS = ("synonyms", "tables")
EMPTY_FORM = FilledForm()


def filled_form(
    term: Annotated[str, Form(max_length=1000)] = "",
    sql: Annotated[str, Form(max_length=10_000)] = "",
    meaning: Annotated[str, Form(max_length=10_000)] = "",
    synonyms: Annotated[str, Form(max_length=10_000)] = "",
    tables: Annotated[str, Form(max_length=10_000)] = "",
) -> FilledForm:
    """From the fields of a form."""
    return FilledForm(term, sql, meaning, synonyms, tables)


Fields = Annotated[FilledForm, Depends(filled_form)]


@router.get("/bank/definitions")
async def definitions_page(
    request: Request, door: Door, work: Working, database: Name = "", edit: Name = ""
) -> Response:
    """List the definitions of one database, with a form to write another."""
    name = await work.read(lambda: chosen_database(request, door, database, Scope.ASK))
    return await _listed(request, door, work, name, editing=edit)


@router.post("/bank/definitions")
async def add(*, request: Request, door: Door, work: Working, database: DatabaseField, fields: Fields) -> Response:
    """Keep a new definition; one that is refused stays in its form, with the reason."""
    name = await work.look(lambda: door.database(database or None, Scope.MANAGE))
    try:
        await work.run(name, lambda: door.define(database=name, **fields.parts()))
    except UserError as error:
        return await _listed(request, door, work, name, writing=fields, trouble=_shown(error))
    return _back(name)


@router.get("/bank/definitions/export")
async def export(door: Door, work: Working, database: Name = "") -> Response:
    """Give the definitions of a database as a CSV."""

    def write() -> bytes:
        out = io.BytesIO()
        door.export_definitions(out, database or None)
        return out.getvalue()

    headers = {"Content-Disposition": 'attachment; filename="definitions.csv"'}
    return Response(await work.read(write), media_type="text/csv", headers=headers)


@router.post("/bank/definitions/import")
async def take_in(
    *, request: Request, door: Door, work: Working, database: DatabaseField, file: UploadFile
) -> Response:
    """Keep every definition of a CSV, all or none."""
    name = await work.look(lambda: door.database(database or None, Scope.MANAGE))
    raw = await file.read()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError("file: not a text in UTF-8") from None
    try:
        own = PurePath(file.filename or "import").name
        report = await work.run(name, lambda: door.import_definitions(text, name, name=own))
    except UserError as error:
        return await _listed(request, door, work, name, trouble=_shown(error))
    return await _listed(request, door, work, name, imported=report)


@router.post("/bank/definitions/{definition_id}/{action}")
async def change(
    *, request: Request, definition_id: Id, action: str, door: Door, work: Working, fields: Fields
) -> Response:
    """Change a definition, stop showing it, show it again, or take it out for good."""
    card = (await work.look(lambda: door.definition(definition_id))).card
    deeds: dict[str, Callable[[], object]] = {
        "disable": lambda: door.disable([card.id]),
        "enable": lambda: door.enable([card.id]),
        "delete": lambda: door.delete(card.id),
    }
    if action == "edit":
        try:
            await work.run(card.database, lambda: door.redefine(card.id, **fields.parts()))
        except UserError as error:
            trouble = _shown(error)
            return await _listed(request, door, work, card.database, editing=card.id, writing=fields, trouble=trouble)
    elif action in deeds:
        await work.write(deeds[action])
    else:
        raise NotFound("a definition can be edited, disabled, enabled or deleted")
    return _back(card.database)


# ── in the queue ─────────────────────────────────────────────────────────────────────────────────────────────────────


@router.get("/queue/definitions")
async def proposals_page(request: Request, door: Door, work: Working, database: Name = "") -> Response:
    """List the definitions that wait for a person, each with what speaks for it."""
    name = await work.read(lambda: chosen_database(request, door, database))
    return await _proposed(request, door, work, name)


@router.post("/queue/definitions")
async def look_for_more(door: Door, work: Working, database: DatabaseField) -> Response:
    """Look for filters that the cards share, and in the comments of columns where values may be kept."""
    name = await work.look(lambda: door.database(database or None, Scope.MANAGE))

    def look() -> None:
        door.propose_definitions(name)
        if door.database_state(name).values == "allowed":
            door.propose_definitions(name, source="comments")

    await work.run(name, look)
    return RedirectResponse("/queue/definitions?" + urlencode({"database": name}), status_code=303)


@router.post("/queue/definitions/{proposal}/{action}")
async def decide(
    *,
    request: Request,
    proposal: Id,
    action: str,
    door: Door,
    work: Working,
    fields: Fields,
    database: DatabaseField = "",
) -> Response:
    """Vouch for a proposal under the name and words of the form, or say that it defines nothing."""
    if action == "reject":
        name = (await work.write(lambda: door.reject_definition(proposal))).database
        return RedirectResponse("/queue/definitions?" + urlencode({"database": name}), status_code=303)
    if action != "confirm":
        raise NotFound("a proposal can be confirmed or rejected")
    try:
        card = await work.write(lambda: door.confirm_definition(proposal, **fields.parts()))
    except UserError as error:
        trouble = _shown(error)
        name = await work.read(lambda: chosen_database(request, door, database))
        return await _proposed(request, door, work, name, at=proposal, writing=fields, trouble=trouble)
    return await _proposed(request, door, work, card.database, confirmed=card)


# ── pages ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _shown(error: UserError) -> str:
    """Give the words for a form; what the caller may not do is no mistake in it."""
    if isinstance(error, NotFound | Forbidden):
        raise error
    return str(error)


def _back(database: str) -> Response:
    return RedirectResponse("/bank/definitions?" + urlencode({"database": database}), status_code=303)


async def _listed(
    request: Request,
    door: Door,
    work: Work,
    database: str,
    *,
    editing: str = "",
    writing: FilledForm = EMPTY_FORM,
    trouble: str = "",
    imported: DefinitionsImported | None = None,
) -> Response:
    def read() -> dict[str, Any]:
        kept = [DefinitionDocument.of(card) for card in door.definitions(database)]
        chosen = next((each for each in kept if each.id == editing), None)
        return {
            "waiting_count": len(waiting_in(door, database)),
            "proposed": proposed_terms(door, database),
            "definitions": list(reversed(kept)),
            "editing": chosen.id if chosen else "",
            "form": FilledForm.of(chosen) if chosen and writing == EMPTY_FORM else writing,
        }

    return page(
        request,
        "definitions.html",
        status=422 if trouble else 200,
        database=database,
        databases=databases_of(door, Scope.ASK),
        may_manage=door.caller.allows(database, Scope.MANAGE),
        trouble=trouble,
        imported=imported,
        active=CardStatus.ACTIVE,
        **await work.read(read),
    )


async def _proposed(
    request: Request,
    door: Door,
    work: Work,
    database: str,
    *,
    at: str = "",
    writing: FilledForm = EMPTY_FORM,
    trouble: str = "",
    confirmed: Card | None = None,
) -> Response:
    def read() -> dict[str, Any]:
        waiting = door.definition_proposals(database)
        return {
            "waiting_count": len(waiting_in(door, database)),
            "proposals": [(each, writing if each.id == at else FilledForm.of(each)) for each in waiting],
        }

    return page(
        request,
        "definitions_queue.html",
        status=422 if trouble else 200,
        database=database,
        databases=databases_of(door),
        may_manage=door.caller.allows(database, Scope.MANAGE),
        at=at,
        trouble=trouble,
        confirmed=DefinitionDocument.of(confirmed) if confirmed is not None else None,
        **await work.read(read),
    )
