"""`Crystal`, the face of the serving loop: ask, verify, keep; from Python, and under every interface."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from sqlcrystal.bank import AnswerRecord, Entry, Proposal, Waiting
from sqlcrystal.config import TEAM_FILE, TeamFile, read_team
from sqlcrystal.errors import SqlcrystalError
from sqlcrystal.protocols import Embedder, LanguageModel
from sqlcrystal.serving import asking, undoing
from sqlcrystal.serving.answers import Notify, ServedAnswer
from sqlcrystal.serving.desk import Desk
from sqlcrystal.serving.locations import absolute
from sqlcrystal.types import Card, CardStatus, Execution, Question, Retrieved

if TYPE_CHECKING:
    from sqlcrystal.bank import CheckReport, Revocation, Store
    from sqlcrystal.serving.banking import Ruling
    from sqlcrystal.serving.value import Value
    from sqlcrystal.serving.verdicts import Correction, Rejection

ModelSpec = str | Mapping[str, Any] | LanguageModel


class DatabaseState(Struct, frozen=True, kw_only=True):
    """One database that can be asked: its engine, how many cards speak for it, or why it cannot be reached."""

    name: str
    dialect: str = ""
    cards: int = 0
    error: str = ""


class Crystal:
    """A team's databases, model and store at work; threads may share one."""

    def __init__(self, team: TeamFile, *, model: LanguageModel | None = None, embedder: Embedder | None = None) -> None:
        """Over validated settings; nothing is opened before it is needed."""
        self.desk = Desk(team, model=model, embedder=embedder)

    @classmethod
    def open(cls, path: Path | str = TEAM_FILE) -> "Crystal":
        """With the settings of a sqlcrystal.toml."""
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
    ) -> "Crystal":
        """Without a settings file: a database by URL or path, a model by name, URL, table or object, and a store."""
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
            crystal.desk.add(str(db), name)
        return crystal

    @property
    def store(self) -> "Store":
        """The store behind it."""
        return self.desk.store

    # ── asking ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def ask(
        self,
        question: str,
        database: str | None = None,
        *,
        by: str = "",
        memory: bool | None = None,
        on_event: Notify | None = None,
    ) -> ServedAnswer:
        """Answer a question; `memory` forces cards in or out, and left alone follows the settings."""
        return asking.ask(self.desk, question, database=database, by=by, memory=memory, on_event=on_event)

    def run(self, sql: str, database: str | None = None) -> Execution:
        """Run one read-only statement behind the guard; SQL that fails comes back as a Failure."""
        return self.desk.site(self.desk.choose(database)).database.execute(sql)

    def schema(self, database: str | None = None) -> str:
        """A database's tables and views as prompts show them."""
        site = self.desk.site(self.desk.choose(database))
        return site.presenter.present(Question(id="", database=site.name, text="")).schema()

    def databases(self) -> list[DatabaseState]:
        """Every database that can be asked, and whether it can be reached."""
        return [self._state(name) for name in self.desk.names()]

    def history(
        self, database: str | None = None, *, question: str | None = None, limit: int = 50
    ) -> list[AnswerRecord]:
        """The latest answers, newest first."""
        if not self.desk.store_exists():
            return []
        return self.store.answers.recent(database=database, question=question, limit=limit)

    # ── verdicts ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def confirm(self, answer: ServedAnswer | AnswerRecord | str, *, by: str = "", note: str = "") -> "Ruling":
        """Vouch for an answer or a proposal: it becomes a card."""
        from sqlcrystal.serving import verdicts

        known = answer.id if isinstance(answer, ServedAnswer) else answer
        return verdicts.confirm(self.desk, known, by=by, note=note)

    def correct(self, answer: ServedAnswer | str, sql: str, *, by: str = "", note: str = "") -> "Correction":
        """Give the right SQL for an answer's question: it becomes a card in your name."""
        from sqlcrystal.serving import verdicts

        return verdicts.correct(self.desk, _name(answer), sql, by=by, note=note)

    def reject(self, answer: ServedAnswer | str, *, by: str = "", note: str = "", repair: bool = True) -> "Rejection":
        """Say that an answer is wrong; a repair proposes another, which only a confirmation makes a card."""
        from sqlcrystal.serving import verdicts

        return verdicts.reject(self.desk, _name(answer), by=by, note=note, repair=repair)

    def undo(self, answer: ServedAnswer | str, *, by: str = "") -> "Ruling":
        """Take a verdict back: its card leaves service."""
        return undoing.undo(self.desk, _name(answer), by=by)

    def queue(self, database: str | None = None, *, limit: int = 100) -> list[Waiting]:
        """What waits for a verdict, most useful first."""
        return self.store.answers.waiting(database=database, limit=limit) if self.desk.store_exists() else []

    def proposals(self, database: str | None = None) -> list[Proposal]:
        """What repairs proposed and nobody decided on yet, oldest first."""
        return self.store.decisions.proposals(database=database) if self.desk.store_exists() else []

    def value(self, database: str | None = None, *, effect_pp: float | None = None) -> "list[Value]":
        """What memory is worth: the live lift with its interval, its cost, which cards earn, and if it is known yet."""
        from sqlcrystal.serving.value import values

        if not self.desk.store_exists():
            return []
        return values(self.store, prices=self.desk.team.prices, database=database, effect_pp=effect_pp)

    # ── cards ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def cards(self, database: str | None = None, *, status: CardStatus | None = None) -> list[Card]:
        """Cards of one database or of all, in the order they were banked."""
        return self.store.bank.find(database=database, status=status) if self.desk.store_exists() else []

    def cards_search(self, text: str, database: str | None = None, *, limit: int = 20) -> list[Retrieved]:
        """The served cards of one database whose questions are nearest to a text."""
        name = self.desk.choose(database)
        bank = self.desk.bank
        if not bank.cards(name):
            return []
        return list(self.desk.retriever().retrieve(asking.as_question(text, name), bank, k=limit))

    def card(self, card_id: str) -> Entry:
        """One card with the episode it came from and what was done to it."""
        card = self.store.bank.get(card_id)
        return Entry(card=card, episode=self.store.bank.episode(card.id), history=self.store.bank.history(card.id))

    def edit(
        self, card_id: str, *, by: str = "", text: str | None = None, sql: str | None = None, reason: str = ""
    ) -> Card:
        """Change a card's text or SQL; whoever changes the SQL vouches for it."""
        from sqlcrystal.serving.privacy import kept_edit

        text, sql, reason = kept_edit(self.desk, self.store.bank.get(card_id), text=text, sql=sql, reason=reason)
        return self.store.bank.edit(card_id, by=self.desk.person(by), text=text, sql=sql, reason=reason)

    def disable(self, ids: Iterable[str], *, by: str = "", reason: str = "") -> list[Card]:
        """Stop serving cards."""
        return self._set(ids, CardStatus.DISABLED, by=by, reason=reason)

    def enable(self, ids: Iterable[str], *, by: str = "", reason: str = "") -> list[Card]:
        """Serve cards again."""
        return self._set(ids, CardStatus.ACTIVE, by=by, reason=reason)

    def delete(self, card_id: str, *, by: str = "", reason: str = "") -> None:
        """Take a card out for good; what was done to it is remembered."""
        card = self.store.bank.get(card_id)
        self.store.bank.delete(card.id, by=self.desk.person(by), reason=self._kept_reason([card], reason))

    def revoke(self, *, revoked_by: str = "", **which: Any) -> "Revocation":
        """Undo a verifier (`by`, `signal`, `since`, `database`), and say which answers leaned on its cards."""
        if any(self.desk.keeps_no_values(name) for name in self.desk.names() if which.get("database") in (None, name)):
            which.pop("reason", None)
        return self.store.revoke(revoked_by=self.desk.person(revoked_by), **which)

    def check(self, database: str | None = None, *, release: bool = False) -> "CheckReport":
        """Run every card of a database again, and quarantine what fails."""
        site = self.desk.site(self.desk.choose(database))
        from sqlcrystal.bank import check_cards

        quote = not self.desk.keeps_no_values(site.name)
        return check_cards(self.store.bank, site.database, release=release, quote=quote)

    # ── opening and closing ──────────────────────────────────────────────────────────────────────────────────────────

    def close(self) -> None:
        """Close what was opened."""
        self.desk.close()

    def __enter__(self) -> "Crystal":
        """Use it in a with statement."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close it."""
        self.close()

    def _set(self, ids: Iterable[str], status: CardStatus, *, by: str, reason: str) -> list[Card]:
        cards = [self.store.bank.get(name) for name in ids]
        kept = self._kept_reason(cards, reason)
        return self.store.bank.set_statuses([card.id for card in cards], status, by=self.desk.person(by), reason=kept)

    def _kept_reason(self, cards: Iterable[Card], reason: str) -> str:
        """Why something was done to cards, in somebody's words: kept only where values may be."""
        return "" if any(self.desk.keeps_no_values(card.database) for card in cards) else reason

    def _state(self, name: str) -> DatabaseState:
        try:
            dialect = self.desk.site(name).database.dialect
        except SqlcrystalError as error:
            return DatabaseState(name=name, error=str(error))
        return DatabaseState(name=name, dialect=dialect, cards=len(self.desk.bank.cards(name)))


def _name(answer: ServedAnswer | str) -> str:
    return answer if isinstance(answer, str) else answer.id
