"""What the HTTP interface takes and gives, as OpenAPI tells it."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from sqlcrystal.bank import Scope
from sqlcrystal.bank.records import MOST_DAYS
from sqlcrystal.types import CardStatus

Text = Annotated[str, Field(max_length=10_000)]
Sql = Annotated[str, Field(min_length=1, max_length=100_000)]
Name = Annotated[str, Field(min_length=1, max_length=200)]


class Given(BaseModel):
    """A request body: an unknown key is a mistake, not a wish."""

    model_config = ConfigDict(extra="forbid")


class AskBody(Given):
    """A question; the database may be left out where the token sees only one."""

    question: Annotated[str, Field(min_length=1, max_length=10_000)]
    database: Name | None = None
    memory: bool | None = None


class NoteBody(Given):
    """A verdict's note."""

    note: Text = ""


class RejectBody(NoteBody):
    """A rejection; `repair` looks for another answer, which is only proposed."""

    repair: bool = True


class CorrectBody(NoteBody):
    """The right SQL."""

    sql: Sql


class RunBody(Given):
    """One read-only statement."""

    sql: Sql
    database: Name | None = None


class CardBody(Given):
    """What changes on a card."""

    status: CardStatus | None = None
    sql: Sql | None = None
    text: Text | None = None
    reason: Text = ""


class RevokeBody(Given):
    """Whose cards are taken out: at least one of by, signal, since."""

    database: Name | None = None
    by: Name | None = None
    signal: Name | None = None
    since: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2})?)?$")] | None = None
    reason: Text = ""


class TokenBody(Given):
    """A new token: who holds it, and scopes on databases."""

    person: Annotated[str, Field(min_length=1, max_length=100)]
    databases: Annotated[list[Name], Field(min_length=1, max_length=100)]
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=3)]
    days: Annotated[float | None, Field(gt=0, le=MOST_DAYS)] = None
    """How long it stands; without end where nothing is given."""


class UsedCardShape(BaseModel):
    """A card that stood in the prompt."""

    id: str
    score: float
    signal: str
    by: str
    question: str


class AnswerShape(BaseModel):
    """An answer; `memory` is null until somebody has given a verdict, so that it cannot sway them."""

    id: str
    database: str
    question: str
    sql: str | None
    columns: list[str]
    rows: list[list[bool | int | float | str | None]] | None
    row_count: int
    truncated: bool
    cards: list[UsedCardShape]
    memory: bool | None
    replayed: bool
    calls: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    error: str
    verdict: str
    card: str


class RulingShape(BaseModel):
    """A verdict as it stands."""

    id: str
    database: str
    verdict: str
    by: str
    card: str
    replaced: list[str]
    memory: bool
    new: bool


class ProposalShape(BaseModel):
    """SQL that a repair came to; no card until it is confirmed."""

    id: str
    sql: str
    columns: list[str]
    rows: list[list[bool | int | float | str | None]]
    row_count: int


class RejectionShape(RulingShape):
    """A rejection, with what a repair proposed."""

    proposal: ProposalShape | None


class RowsShape(BaseModel):
    """What a statement returned; `error` where it did not run."""

    columns: list[str]
    rows: list[list[bool | int | float | str | None]]
    row_count: int
    truncated: bool
    seconds: float
    error: str


class CardShape(BaseModel):
    """A card as lists show it."""

    id: str
    database: str
    question: str
    sql: str
    status: CardStatus
    signal: str
    by: str
    at: str
    writer: str
    source: str
    tokens: int


class WholeCardShape(CardShape):
    """A card with its text, its first attempt and its history."""

    text: str
    first_attempt: str | None
    history: list[dict[str, Any]]


class WaitingShape(BaseModel):
    """A question that waits for a verdict."""

    id: str
    database: str
    question: str
    at: str
    asked: int
    spread: float
    conflict: float


class PastShape(BaseModel):
    """An answer as history lists it."""

    id: str
    database: str
    question: str
    at: str
    asked_by: str
    verdict: str


class DatabaseShape(BaseModel):
    """A database the token sees."""

    name: str
    dialect: str
    cards: int
    error: str
    scopes: list[Scope]


class RevokedShape(BaseModel):
    """What a revocation took out, and the answers that had leaned on it."""

    revoked: list[str]
    leaned: list[PastShape]


class GrantShape(BaseModel):
    """A token without the token."""

    id: str
    person: str
    scopes: list[tuple[str, Scope]]
    made_at: str
    made_by: str
    ends_at: str
    revoked_at: str


class IssuedShape(GrantShape):
    """A new token, shown this once."""

    token: str


class ErrorShape(BaseModel):
    """One line that says what was wrong."""

    detail: Any


class StateShape(BaseModel):
    """Whether the server can work."""

    status: Literal["ok", "stopping", "store unreachable"]


class SchemaShape(BaseModel):
    """A database's tables as prompts show them."""

    database: str
    schema_text: Annotated[str, Field(serialization_alias="schema")]
