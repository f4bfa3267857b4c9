"""Definitions over HTTP: each route calls one action of the door, and writes its document."""

import io
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from sqlcrystal.bank import Scope
from sqlcrystal.interfaces.server.access import Door
from sqlcrystal.interfaces.server.api import Id, Name, RequestBody, Sql, Text, Which
from sqlcrystal.interfaces.server.replies import ERRORS, Working, json_reply
from sqlcrystal.interfaces.server.schemas import listed, model_of
from sqlcrystal.serving.documents import DefinitionDocument, DefinitionProposal, DefinitionsImported, WholeDefinition
from sqlcrystal.types import CardStatus

definitions = APIRouter(prefix="/api", tags=["cards"], responses=ERRORS)

# ── bodies ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class DefinitionParts(RequestBody):
    """Parts of a definition; those that are left out stay as they are."""

    term: Annotated[str, Field(max_length=1000)] | None = None
    sql: Annotated[str, Field(max_length=10_000)] | None = None
    tables: Annotated[list[Name], Field(max_length=100)] | None = None
    synonyms: Annotated[list[Name], Field(max_length=100)] | None = None
    meaning: Text | None = None

    def parts(self) -> dict[str, Any]:
        """Give the parts of a definition alone."""
        return {name: getattr(self, name) for name in DefinitionParts.model_fields}


class DefinitionBody(DefinitionParts):
    """A new definition: a term with its SQL expression."""

    database: Name | None = None
    term: Name
    sql: Sql


class DefinitionChange(DefinitionParts):
    """The changes to a definition, and why."""

    reason: Text = ""


class DefinitionsBody(RequestBody):
    """The text of a CSV of definitions."""

    database: Name | None = None
    name: Name = "import"
    text: Annotated[str, Field(min_length=1, max_length=200_000)]


class ProposeBody(RequestBody):
    """The place to look for definitions: the cards, or with `comments` in the comments of columns."""

    database: Name | None = None
    source: Literal["comments"] | None = None


# ── routes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@definitions.get("/definitions", response_model=listed(DefinitionDocument))
async def list_definitions(
    door: Door, work: Working, database: Which = None, status: CardStatus | None = None
) -> Response:
    """List the definitions of a database, in the order they were written."""
    name = await work.look(lambda: door.database(database))
    found = await work.read(lambda: door.definitions(name, status=status))
    return json_reply(list(map(DefinitionDocument.of, found)))


@definitions.post("/definitions", response_model=model_of(DefinitionDocument), status_code=201)
async def define(body: DefinitionBody, door: Door, work: Working) -> Response:
    """Tell the model from now on what a term means; the expression is run over its tables first."""
    name = await work.look(lambda: door.database(body.database, Scope.MANAGE))
    parts = {part: value for part, value in body.parts().items() if value is not None}
    card = await work.run(name, lambda: door.define(database=name, **parts))
    return json_reply(DefinitionDocument.of(card), status=201)


@definitions.post("/definitions/import", response_model=model_of(DefinitionsImported))
async def import_definitions(body: DefinitionsBody, door: Door, work: Working) -> Response:
    """Keep every definition of a CSV, all or none, in your name."""
    name = await work.look(lambda: door.database(body.database, Scope.MANAGE))
    return json_reply(await work.run(name, lambda: door.import_definitions(body.text, name, name=body.name)))


@definitions.get("/definitions/export")
async def export_definitions(door: Door, work: Working, database: Which = None) -> Response:
    """Give the definitions that are shown as a CSV that can be imported."""

    def write() -> bytes:
        out = io.BytesIO()
        door.export_definitions(out, door.database(database, Scope.MANAGE))
        return out.getvalue()

    return Response(await work.read(write), media_type="text/csv")


@definitions.get("/definitions/proposals", response_model=listed(DefinitionProposal))
async def definition_proposals(door: Door, work: Working, database: Which = None) -> Response:
    """List the proposed definitions that wait for a person, oldest first."""
    return json_reply(await work.read(lambda: door.definition_proposals(door.database(database, Scope.JUDGE))))


@definitions.post("/definitions/propose", response_model=listed(DefinitionProposal))
async def propose_definitions(body: ProposeBody, door: Door, work: Working) -> Response:
    """Look for definitions to propose; nothing is shown to a model before a person confirms it."""
    name = await work.look(lambda: door.database(body.database, Scope.MANAGE))
    return json_reply(await work.run(name, lambda: door.propose_definitions(name, source=body.source)))


@definitions.post("/definitions/proposals/{proposal}/confirm", response_model=model_of(DefinitionDocument))
async def confirm_definition(proposal: Id, door: Door, work: Working, body: DefinitionParts | None = None) -> Response:
    """Vouch for a proposed definition, under the term and words that you give."""
    parts = (body or DefinitionParts()).parts()
    card = await work.write(lambda: door.confirm_definition(proposal, **parts))
    return json_reply(DefinitionDocument.of(card))


@definitions.post("/definitions/proposals/{proposal}/reject", response_model=model_of(DefinitionProposal))
async def reject_definition(proposal: Id, door: Door, work: Working) -> Response:
    """Say that a proposal defines nothing; it is not proposed again."""
    return json_reply(await work.write(lambda: door.reject_definition(proposal)))


@definitions.get("/definitions/{definition_id}", response_model=model_of(WholeDefinition))
async def definition(definition_id: Id, door: Door, work: Working) -> Response:
    """Give one definition with its history; DELETE and PATCH of its status are those of a card."""
    return json_reply(await work.read(lambda: WholeDefinition.of_entry(door.definition(definition_id))))


@definitions.patch("/definitions/{definition_id}", response_model=model_of(DefinitionDocument))
async def redefine(definition_id: Id, body: DefinitionChange, door: Door, work: Working) -> Response:
    """Change parts of a definition; new SQL is run first, and you vouch for it."""
    database = (await work.look(lambda: door.definition(definition_id))).card.database
    card = await work.run(database, lambda: door.redefine(definition_id, **body.parts(), reason=body.reason))
    return json_reply(DefinitionDocument.of(card))
