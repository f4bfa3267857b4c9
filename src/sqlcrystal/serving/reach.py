"""An open team in the name of one caller: opening and closing it, and the names and cells that they may use of it."""

import copy
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from msgspec.structs import replace

from sqlcrystal.bank import AnswerRecord, Proposal, Scope
from sqlcrystal.config import TEAM_FILE, Prices, TeamFile, read_team
from sqlcrystal.errors import BankError, ConfigError, Forbidden, NotFound, SqlcrystalError, UserError
from sqlcrystal.protocols import Embedder, LanguageModel
from sqlcrystal.serving.answers import ServedAnswer
from sqlcrystal.serving.callers import Caller
from sqlcrystal.serving.documents import PastAnswer, UsedDefinition
from sqlcrystal.serving.workspace import Workspace, absolute
from sqlcrystal.types import Card

if TYPE_CHECKING:
    from sqlcrystal.bank import Store

ModelSpec = str | Mapping[str, Any] | LanguageModel


class OpenTeam:
    """A workspace and the caller it works for; threads may share one."""

    def __init__(self, team: TeamFile, *, model: LanguageModel | None = None, embedder: Embedder | None = None) -> None:
        """Take validated settings; nothing is opened before it is needed."""
        self.workspace = Workspace(team, model=model, embedder=embedder)
        self.caller = Caller.at_keyboard()

    @classmethod
    def open(cls, path: Path | str = TEAM_FILE) -> Self:
        """Open with the settings of a sqlcrystal.toml."""
        return cls(read_team(path))

    @classmethod
    def over(
        cls,
        db: str | Path | None = None,
        *,
        model: ModelSpec | None = None,
        store: str | Path = "sqlcrystal.db",
        name: str | None = None,
        embedder: str | Mapping[str, Any] | Embedder | None = None,
        team: TeamFile | None = None,
    ) -> Self:
        """Open without a settings file: a database by URL or path, a model by name, URL, table or object, a store."""
        settings = replace(team or TeamFile(), store=absolute(str(store)))
        given_model = given_embedder = None
        if isinstance(model, str | Mapping):
            settings = replace(settings, model=model if isinstance(model, str) else dict(model))
        else:
            given_model = model
        if isinstance(embedder, str | Mapping):
            settings = replace(settings, embedder=embedder if isinstance(embedder, str) else dict(embedder))
        else:
            given_embedder = embedder
        crystal = cls(settings, model=given_model, embedder=given_embedder)
        if db is not None:
            crystal.workspace.add(str(db), name)
        return crystal

    def acting_for(self, caller: Caller) -> Self:
        """Give the same team's Crystal to another caller, under their name and scopes."""
        other = copy.copy(self)
        other.caller = caller
        return other

    # ── the team's settings ──────────────────────────────────────────────────────────────────────────────────────────

    @property
    def store(self) -> "Store":
        """Give the store behind it, for programs of the team's own; interfaces do not reach for it."""
        return self.workspace.store

    @property
    def prices(self) -> Prices:
        """Give the prices of tokens."""
        return self.workspace.team.prices

    @property
    def model_spec(self) -> str | Mapping[str, Any]:
        """Give the model as the settings name it."""
        return self.workspace.team.model

    def model_name(self) -> str:
        """Name the model; where it cannot be opened, say why."""
        try:
            return self.workspace.model.name
        except SqlcrystalError as error:
            return str(error)

    @property
    def reads_at_once(self) -> bool:
        """Tell whether a look into the store takes microseconds: it is a file, and no server has to be asked."""
        return self.store.is_file

    def is_ready(self) -> bool:
        """Tell whether the store answers."""
        try:
            self.store.answers.recent(limit=1)
        except SqlcrystalError:
            return False
        return True

    def warm_up(self) -> None:
        """Load what the first question would wait for."""
        from sqlcrystal.serving.asking import warm_up

        warm_up(self.workspace)

    def close(self) -> None:
        """Close what was opened."""
        self.workspace.close()

    def __enter__(self) -> Self:
        """Use it in a with statement."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close it."""
        self.close()

    def _named(self, by: str) -> str:
        """Name the person who acts: the caller, or at the keyboard another who is named."""
        if by and by != self.caller.person and not self.caller.local:
            raise Forbidden(f"by: you act as {self.caller.person!r}, not as {by!r}")
        return by or self.caller.person

    def _person(self, by: str) -> str:
        """Name the person who vouches; refused when the team does not know them."""
        return self.workspace.person(self._named(by))


class ReachedTeam(OpenTeam):
    """An open team as far as its caller reaches; `Crystal` adds the actions."""

    def database(self, name: str | None = None, scope: Scope = Scope.ASK) -> str:
        """Name the database that is meant: the one named, or the only one that the caller sees."""
        return database_for(self.workspace, self.caller, name, scope)

    def database_asked(self, name: str | None, follow: str = "") -> str:
        """Name the database of a question: the one named, or that of the answer it goes on from, or the only one."""
        return self.database_of(follow, Scope.ASK) if follow and name is None else self.database(name)

    def database_names(self, scope: Scope | None = None) -> list[str]:
        """Name the databases that exist for the caller, or on which they have a scope."""
        seen = self.caller.seen(self.workspace.names())
        return seen if scope is None else [name for name in seen if self.caller.allows(name, scope)]

    def database_of(self, answer: str, scope: Scope = Scope.JUDGE) -> str:
        """Name the database of an answer or a proposal."""
        if answer.startswith(PROPOSAL_MARK) and not self.caller.local:
            return proposal_for(self.workspace, self.caller, answer).database
        return answer_for(self.workspace, self.caller, answer, scope).database

    def _judged(self, name: str, person: str) -> AnswerRecord:
        return answer_for(self.workspace, self.caller, name, Scope.JUDGE, person=person)

    def _card(self, name: str, scope: Scope) -> Card:
        return card_for(self.workspace, self.caller, name, scope)

    def _one_or_all(self, database: str | None, scope: Scope = Scope.ASK) -> str | None:
        """Name one database, or none for all of them: at the keyboard all may be meant, elsewhere one must be."""
        if self.caller.local:
            return None if database is None else kept_database(self.workspace, database)
        return self.database(database, scope)

    def _withholds(self, database: str) -> bool:
        """Tell whether the caller may see no cell of a database."""
        return self.caller.is_model and self.workspace.keeps_no_values(database)

    def _shown(self, answer: ServedAnswer) -> ServedAnswer:
        if not self._withholds(answer.database):
            return answer
        if answer.repaired:  # a value may have been spelled as it is stored: a model sees the SQL as the store keeps it
            from sqlcrystal.serving.in_words import in_words

            sql = self.store.answers.get(answer.id).sql
            words = in_words(self.workspace, answer.database, sql).words
            answer = replace(answer, sql=sql, words=words, unasked=())
        return answer.withheld()

    def _past(self, records: Iterable[AnswerRecord]) -> list[PastAnswer]:
        verdict = self.store.answers.verdict
        return [PastAnswer.of(record, verdict(record.id)) for record in records]


# ── what is named, for one caller ──────────────────────────────────────────────────────────────────────────────────


LAST = "last"
"""Names the latest answer that the person at the keyboard asked for."""
PROPOSAL_MARK = "p-"
_LOOKED_AT = 200


def database_for(workspace: Workspace, caller: Caller, name: str | None, scope: Scope = Scope.ASK) -> str:
    """Find the database that is meant: the one named, or else the only one that the caller sees."""
    if caller.local:
        return workspace.choose(name)
    # Only names: a path or URL would be opened, which only the owner of the machine may do.
    seen = caller.seen(workspace.names())
    if name is None:
        if len(seen) != 1:
            raise ConfigError(f"database: say which; choose from {', '.join(seen) or 'none'}")
        name = seen[0]
    if name not in seen:
        raise NotFound(f"no database {name!r} here, or not for you")
    caller.require(name, scope, sought=f"database {name!r}")
    return name


def kept_database(workspace: Workspace, name: str) -> str:
    """Name a database that settings or the store know, as its cards do; at the keyboard also by its URL or file."""
    known_as = workspace.known_name(name)
    known = {*workspace.names(), *(place.database for place in workspace.known_places())}
    known.update(workspace.store.bank.all_databases() if workspace.store_exists() else ())
    if known_as not in known:
        raise ConfigError.unknown("database", known_as, known)
    return known_as


def answer_for(
    workspace: Workspace, caller: Caller, name: str, scope: Scope = Scope.ASK, *, person: str = ""
) -> AnswerRecord:
    """Find an answer by its id; at the keyboard also by the start of it, by a proposal's, or as the last one."""
    store = existing_store(workspace)
    if caller.local:
        return _answer_at_keyboard(store, name, person or caller.person)
    missing = NotFound(f"no answer {name[:40]!r} here, or not for you")
    try:
        record = store.answers.get(name)
    except BankError:
        raise missing from None
    # The answer of the other arm, where both were asked, stays hidden: it would tell the judge which arm they see.
    if record.id != name or record.twin_of or not caller.sees(record.database):
        raise missing
    caller.require(record.database, scope, sought="answer")
    return record


def followed(workspace: Workspace, caller: Caller, name: str, *, person: str) -> AnswerRecord:
    """Find the answer that a question goes on from: one that was shown, over a database that the caller may ask.

    After a proposal it is that which was shown last: the answer is given with its question and its SQL.
    """
    proposal = proposal_for(workspace, caller, name) if name.startswith(PROPOSAL_MARK) else None
    record = answer_for(workspace, caller, proposal.answer if proposal else name, Scope.ASK, person=person)
    if record.twin_of:
        raise NotFound(f"no answer {name[:40]!r} here, or not for you")
    if proposal is None:
        return record
    return replace(record, question=proposal.question or record.question, sql=proposal.sql, error="")


def proposal_for(workspace: Workspace, caller: Caller, name: str) -> Proposal:
    """Find a proposal by its id."""
    missing = NotFound(f"no proposal {name[:40]!r} here, or not for you")
    try:
        proposal = existing_store(workspace).decisions.proposal(name)
    except BankError as error:
        raise (NotFound(str(error)) if caller.local else missing) from None
    if not caller.sees(proposal.database):
        raise missing
    caller.require(proposal.database, Scope.JUDGE, sought="proposal")
    return proposal


def card_for(workspace: Workspace, caller: Caller, name: str, scope: Scope = Scope.ASK) -> Card:
    """Find a card by its id; at the keyboard also by the start of it."""
    missing = NotFound(f"no card {name[:40]!r} here, or not for you")
    try:
        card = existing_store(workspace).bank.get(name)
    except BankError as error:
        raise (NotFound(str(error)) if caller.local else missing) from None
    if not caller.local and (card.id != name or not caller.sees(card.database)):
        raise missing
    caller.require(card.database, scope, sought="card")
    return card


def known_card(workspace: Workspace, name: str) -> Card | None:
    """Find a card that an answer used, unless it was deleted since."""
    try:
        return workspace.store.bank.get(name)
    except BankError:
        return None


def used_definitions(workspace: Workspace, record: AnswerRecord) -> tuple[UsedDefinition, ...]:
    """Name the definitions that stood beside an answer's question, apart from those that were deleted since."""
    found = ((known_card(workspace, use.card), use.name) for use in record.definitions)
    return tuple(UsedDefinition.of(card, name) for card, name in found if card is not None)


def existing_store(workspace: Workspace) -> "Store":
    """Open the store, which must be there already: looking does not make one."""
    if not workspace.store_exists():
        raise UserError(f"{workspace.team.store}: there is no store here yet; ask first")
    return workspace.store


def _answer_at_keyboard(store: "Store", name: str, person: str) -> AnswerRecord:
    if name == LAST:
        latest = [record for record in store.answers.recent(limit=_LOOKED_AT) if record.asked_by == person]
        if not latest:
            raise NotFound(f"answer {LAST}: {person} has not asked anything here lately; give an id")
        return latest[0]
    try:
        if name.startswith(PROPOSAL_MARK):
            name = store.decisions.proposal(name).answer
        return store.answers.get(name)
    except BankError as error:
        raise NotFound(str(error)) from None
