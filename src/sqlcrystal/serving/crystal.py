"""`Crystal`, the one door to every action: Python programs, commands, HTTP, pages, MCP and chat all call it.

Every action is one of a caller, and every check of it is here or below: scope, person, privacy of values, the guard.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from msgspec.structs import replace

from sqlcrystal.bank import CardEffect, Entry, Grant, Proposal, Scope, Verdict
from sqlcrystal.errors import Contradicted, UserError
from sqlcrystal.protocols import Described
from sqlcrystal.serving import asking, reach
from sqlcrystal.serving.actions import Defining
from sqlcrystal.serving.answers import Notify, ServedAnswer
from sqlcrystal.serving.callers import Caller
from sqlcrystal.serving.documents import (
    Correction,
    DatabaseState,
    IssuedToken,
    PastAnswer,
    Rejection,
    Result,
    Revoked,
    Ruling,
    WaitingAnswer,
)
from sqlcrystal.types import Card, CardStatus, Question, Retrieved, Table

if TYPE_CHECKING:
    from sqlcrystal.bank import CheckReport, Forgotten, ImportReport
    from sqlcrystal.databases.spelling import NotHeld
    from sqlcrystal.serving.learning import LearnReport, LogSource, Watch
    from sqlcrystal.serving.stories import AnswerStory, CardStory


Said = TypeVar("Said", bound=Ruling)


class Crystal(Defining):
    """A team's databases, model and store at work for one caller; threads may share one."""

    # ── asking ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def ask(
        self,
        question: str,
        database: str | None = None,
        *,
        by: str = "",
        follow: ServedAnswer | str = "",
        memory: bool | None = None,
        on_event: Notify | None = None,
    ) -> ServedAnswer:
        """Answer a question; `memory` forces cards in or out, and left alone follows the settings.

        With `follow`, an answer or its id, the question goes on from it: it is read as one that stands alone.
        """
        person = self._named(by)
        earlier = reach.followed(self.workspace, self.caller, _name(follow), person=person) if follow else None
        name = self.database(database or (earlier.database if earlier else None))
        answer = asking.ask(
            self.workspace, question, database=name, by=person, earlier=earlier, memory=memory, on_event=on_event
        )
        return self._shown(answer)

    def run(self, sql: str, database: str | None = None, *, scope: Scope = Scope.ASK) -> Result:
        """Run one read-only statement behind the guard; SQL that fails is a result with an error."""
        name = self.database(database, scope)
        from sqlcrystal.serving.in_words import in_words

        result = Result.of(self.workspace.open(name).database.execute(sql), in_words(self.workspace, name, sql).words)
        return result.withheld() if self._withholds(name) else result

    def schema(self, database: str | None = None) -> str:
        """Write a database's tables and views as prompts show them."""
        opened = self.workspace.open(self.database(database))
        return opened.presenter.present(Question(id="", database=opened.name, text="")).schema()

    def tables(self, database: str | None = None) -> Sequence[Table]:
        """List a database's tables with their columns."""
        described = self.workspace.open(self.database(database)).database
        return described.tables() if isinstance(described, Described) else ()

    def databases(self) -> list[DatabaseState]:
        """Describe every database that exists for the caller, and whether it can be reached."""
        from sqlcrystal.serving.stories import database_state

        return [database_state(self.workspace, self.caller, name) for name in self.database_names()]

    def database_state(self, database: str | None = None) -> DatabaseState:
        """Describe one database, and whether it can be reached."""
        from sqlcrystal.serving.stories import database_state

        return database_state(self.workspace, self.caller, self.database(database))

    # ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def answer(self, name: str) -> ServedAnswer:
        """Give an answer again as it was given, with the verdict that stands on it."""
        from sqlcrystal.serving.stories import answer_as_given

        record = reach.answer_for(self.workspace, self.caller, name)
        return self._shown(answer_as_given(self.workspace, record))

    def answer_story(self, name: str, scope: Scope = Scope.ASK) -> "AnswerStory":
        """Tell how an answer came about and what was said of it, for a page that shows all of it."""
        from sqlcrystal.serving.stories import answer_story

        record = reach.answer_for(self.workspace, self.caller, name, scope)
        return answer_story(self.workspace, self.caller, record)

    def answer_again(self, name: str, scope: Scope = Scope.ASK) -> Result:
        """Run an answer's SQL on the database as it is now; refused where it was kept without its values."""
        from sqlcrystal.serving.privacy import runs_as_kept
        from sqlcrystal.serving.stories import as_it_stands

        record = as_it_stands(self.workspace, reach.answer_for(self.workspace, self.caller, name, scope))
        if record.sql is None or record.error:
            return Result()
        if not runs_as_kept(record, record.sql):
            raise UserError(f"answer {record.id}: its SQL was kept without its values and cannot run again; ask again")
        return self.run(record.sql, record.database, scope=scope)

    def near_values(self, name: str, scope: Scope = Scope.ASK) -> "tuple[NotHeld, ...]":
        """Look up the values that an answer's SQL asks for and its columns never hold, with those like them."""
        from sqlcrystal.serving.stories import near_values

        record = reach.answer_for(self.workspace, self.caller, name, scope)
        return () if self._withholds(record.database) else near_values(self.workspace, record)

    def history(self, database: str | None = None, *, question: str | None = None, limit: int = 50) -> list[PastAnswer]:
        """List the latest answers, newest first."""
        if not self.workspace.store_exists():
            return []
        name = self._one_or_all(database)
        records = self.store.answers.recent(database=name, question=question, limit=limit)
        return self._past(record for record in records if not record.twin_of)

    def queue(self, database: str | None = None, *, limit: int = 100, told: bool = True) -> list[WaitingAnswer]:
        """List what waits for a verdict, most useful first; `told` leaves out the words where nobody reads them."""
        if not self.workspace.store_exists():
            return []
        name = self._one_or_all(database, Scope.JUDGE)
        proposed: dict[str, list[str]] = {}
        for proposal in self.store.decisions.proposals(database=name):
            proposed.setdefault(proposal.answer, []).append(proposal.id)
        from sqlcrystal.serving.stories import waiting_answers

        waiting = self.store.answers.waiting(database=name, limit=limit)
        return waiting_answers(self.workspace, waiting, proposed, told=told)

    def learn(
        self,
        source: "LogSource",
        database: str | None = None,
        *,
        most: int | None = None,
        again: bool = False,
        watch: "Watch | None" = None,
    ) -> "LearnReport":
        """Propose what the queries of a log teach: a file, folder, server or upload; nothing is a card before."""
        from sqlcrystal.serving.learning import learn

        return learn(self.workspace, self.caller, database, source, again=again, most=most, watch=watch)

    def proposals(self, database: str | None = None) -> list[Proposal]:
        """List the proposals of repairs that wait for a decision, oldest first."""
        if not self.workspace.store_exists():
            return []
        return self.store.decisions.proposals(database=self._one_or_all(database, Scope.JUDGE))

    # ── verdicts ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def confirm(self, answer: ServedAnswer | str, *, by: str = "", note: str = "", anyway: bool = False) -> Ruling:
        """Vouch for an answer or a proposal: it becomes a card; `anyway` also where a near card says otherwise."""
        from sqlcrystal.serving import verdicts

        person, name = self._person(by), _name(answer)
        if name.startswith(reach.PROPOSAL_MARK):
            proposal = reach.proposal_for(self.workspace, self.caller, name)
            return self._ruled(verdicts.confirm_proposal(self.workspace, proposal, by=person, note=note, anyway=anyway))
        record = self._judged(name, person)
        return self._ruled(verdicts.confirm_answer(self.workspace, record, by=person, note=note, anyway=anyway))

    def pick(
        self, answer: ServedAnswer | str, reading: int, *, by: str = "", note: str = "", anyway: bool = False
    ) -> Ruling:
        """Say which of an answer's two readings was meant, 1 or 2: it becomes the card."""
        from sqlcrystal.serving import verdicts

        person = self._person(by)
        record = self._judged(_name(answer), person)
        return self._ruled(verdicts.pick_reading(self.workspace, record, reading, by=person, note=note, anyway=anyway))

    def confirm_all(
        self, answers: Iterable[ServedAnswer | str], *, by: str = "", note: str = "", leave_doubtful: bool = False
    ) -> list[Ruling]:
        """Vouch for several answers, all or none; `leave_doubtful` leaves out those that a near card speaks against."""
        rulings = []
        with self.store.transaction():
            for answer in answers:
                try:
                    rulings.append(self.confirm(answer, by=by, note=note))
                except Contradicted:  # it is looked at alone, where it is asked first
                    if not leave_doubtful:
                        raise
        return rulings

    def correct(self, answer: ServedAnswer | str, sql: str, *, by: str = "", note: str = "") -> Correction:
        """Give the right SQL for an answer's question: it becomes a card in the caller's name."""
        from sqlcrystal.serving import verdicts

        person, name, proposal = self._person(by), _name(answer), None
        if name.startswith(reach.PROPOSAL_MARK):
            proposal = reach.proposal_for(self.workspace, self.caller, name)
            name = proposal.answer
        record = self._judged(name, person)
        given = verdicts.correct_answer(self.workspace, record, sql, by=person, note=note, proposal=proposal)
        given = self._ruled(given)
        if not self._withholds(record.database):
            return given
        return replace(given, columns=(), rows=(), row_count=min(given.row_count, 1))

    def reject(self, answer: ServedAnswer | str, *, by: str = "", note: str = "", repair: bool = True) -> Rejection:
        """Say that an answer is wrong; a repair proposes another, which only a confirmation makes a card."""
        from sqlcrystal.serving import verdicts

        person, name = self._person(by), _name(answer)
        if name.startswith(reach.PROPOSAL_MARK):
            proposal = reach.proposal_for(self.workspace, self.caller, name)
            return self._ruled(verdicts.reject_proposal(self.workspace, proposal, by=person, note=note))
        record = self._judged(name, person)
        given = self._ruled(verdicts.reject_answer(self.workspace, record, by=person, note=note, repair=repair))
        if given.proposal is None or not self._withholds(record.database):
            return given
        # A repair looks at the data, so that its SQL may hold a cell: a model sees it as the store keeps it.
        from sqlcrystal.serving.in_words import in_words

        kept = self.store.decisions.proposal(given.proposal.id)
        words = in_words(self.workspace, record.database, kept.sql).words
        return given.withheld(kept.sql, words, kept.question)

    def _ruled(self, ruling: Said) -> Said:
        """Let every so many verdicts refit how sure answers are told to be, and a new card propose what it shares."""
        if ruling.new:
            from sqlcrystal.serving.refit import refit_when_due

            refit_when_due(self.store, ruling.database)
        if ruling.new and ruling.card and ruling.verdict in (Verdict.CONFIRMED, Verdict.CORRECTED):
            from sqlcrystal.serving.definitions import propose_what_is_shared

            propose_what_is_shared(self.workspace, ruling.card)
        return ruling

    def undo(self, answer: ServedAnswer | str, *, by: str = "") -> Ruling:
        """Take a verdict back: its card leaves service."""
        from sqlcrystal.serving import verdicts

        person = self._person(by)
        return verdicts.undo(self.workspace, self._judged(_name(answer), person), by=person)

    # ── cards ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def cards(
        self,
        database: str | None = None,
        *,
        status: CardStatus | str | None = None,
        signal: str | None = None,
        by: str | None = None,
        writer: str | None = None,
    ) -> list[Card]:
        """List cards of one database or of all, in the order they were banked."""
        if not self.workspace.store_exists():
            return []
        name = self._one_or_all(database)
        if signal is None and by is None and writer is None and status in {None, *CardStatus}:
            return self.store.bank.find(database=name, status=CardStatus(status) if status else None)
        from sqlcrystal.serving.cards import find_cards

        return find_cards(self.workspace, database=name, status=status, signal=signal, by=by, writer=writer)

    def cards_search(self, text: str, database: str | None = None, *, limit: int = 20) -> list[Retrieved]:
        """List the served cards of one database whose questions are nearest to a text."""
        name = self.database(database)
        bank = self.workspace.bank
        if not bank.cards(name):
            return []
        return list(self.workspace.retriever_of(name).retrieve(asking.as_question(text, name), bank, k=limit))

    def card(self, card_id: str) -> Entry:
        """Give one card with the episode it came from and its history."""
        card = self._card(card_id, Scope.ASK)
        return Entry(card=card, episode=self.store.bank.episode(card.id), history=self.store.bank.history(card.id))

    def card_story(self, card_id: str) -> "CardStory":
        """Tell how a card fared, for a page that shows all of it."""
        from sqlcrystal.serving.stories import card_story

        return card_story(self.workspace, self.caller, self.card(card_id))

    def card_effects(self, database: str | None = None) -> list[CardEffect]:
        """Count how the answers fared that each card of a database stood in."""
        name = self.database(database)
        return self.store.answers.effects(name) if self.workspace.store_exists() else []

    def edit(
        self, card_id: str, *, by: str = "", text: str | None = None, sql: str | None = None, reason: str = ""
    ) -> Card:
        """Change a card's text or SQL; new SQL is run first, and its writer vouches for it."""
        from sqlcrystal.serving.cards import edit_card

        person, card = self._person(by), self._card(card_id, Scope.MANAGE)
        return edit_card(self.workspace, card, by=person, text=text, sql=sql, reason=reason)

    def change(
        self,
        card_id: str,
        *,
        status: CardStatus | None = None,
        text: str | None = None,
        sql: str | None = None,
        reason: str = "",
    ) -> Card:
        """Edit a card, or serve it or not, or both together."""
        if text is not None or sql is not None:
            self.edit(card_id, text=text, sql=sql, reason=reason)
        if status is not None:
            change = self.enable if status is CardStatus.ACTIVE else self.disable
            change([card_id], reason=reason)
        return self._card(card_id, Scope.MANAGE)

    def disable(
        self, ids: Iterable[str] | None = None, *, by: str = "", reason: str = "", **matching: str | None
    ) -> list[Card]:
        """Stop serving cards: those named, or all that match a database, signal, admitter (`admitted`) or writer."""
        return self._set_status(CardStatus.DISABLED, ids, matching, by=by, reason=reason)

    def enable(
        self, ids: Iterable[str] | None = None, *, by: str = "", reason: str = "", **matching: str | None
    ) -> list[Card]:
        """Serve cards again: those named, or all disabled ones that match and whose question has no card."""
        return self._set_status(CardStatus.ACTIVE, ids, matching, by=by, reason=reason)

    def delete(self, ids: str | Iterable[str], *, by: str = "", reason: str = "") -> list[str]:
        """Take cards out for good, all or none; what was done to them is remembered."""
        from sqlcrystal.serving.cards import kept_reason

        person = self._person(by)
        cards = [self._card(name, Scope.MANAGE) for name in ([ids] if isinstance(ids, str) else ids)]
        kept = kept_reason(self.workspace, (card.database for card in cards), reason)
        names = list(dict.fromkeys(card.id for card in cards))
        with self.store.transaction():
            for name in names:
                self.store.bank.delete(name, by=person, reason=kept)
        return list(map(str, names))

    def revoke(
        self,
        *,
        by: str | None = None,
        signal: str | None = None,
        since: str | None = None,
        database: str | None = None,
        reason: str = "",
        revoked_by: str = "",
        preview: bool = False,
    ) -> Revoked:
        """Undo a verifier: its cards leave service, its verdicts fall; with `preview` only tell which would."""
        from sqlcrystal.serving.cards import kept_reason, moment

        if by is None and signal is None and since is None:
            raise UserError("revoke: give one or more of by, signal, since")
        since = None if since is None else moment(since)
        person = self._person(revoked_by)
        name = self._one_or_all(database, Scope.MANAGE)
        store = reach.existing_store(self.workspace)
        if preview:
            cards = tuple(store.bank.find(database=name, signal=signal, admitted_by=by, since=since, kind=None))
            leaned = tuple(store.answers.leaning_on([card.id for card in cards]))
        else:
            kept = kept_reason(self.workspace, [name] if name else self.workspace.names(), reason)
            gone = store.revoke(revoked_by=person, by=by, signal=signal, since=since, database=name, reason=kept)
            cards, leaned = gone.cards, gone.leaned
        shown = self._past(record for record in leaned if not record.twin_of)
        return Revoked(revoked=tuple(card.id for card in cards), leaned=tuple(shown))

    def check(
        self,
        database: str | None = None,
        *,
        release: bool = False,
        timeout: float = 30.0,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> "CheckReport":
        """Run every card of a database again, and quarantine those that fail."""
        from sqlcrystal.serving.cards import check_database

        name = self.database(database, Scope.MANAGE)
        return check_database(self.workspace, name, release=release, timeout=timeout, on_progress=on_progress)

    def import_cards(self, entries: Iterable[Entry], *, by: str = "") -> "ImportReport":
        """Bank every card of an export or of a study's run, all or none; those already there stay as they are."""
        from sqlcrystal.serving.cards import import_all

        self.caller.require_owner()
        self._person(by)
        return import_all(self.workspace, entries)

    def export_cards(self, out: BinaryIO, database: str | None = None) -> int:
        """Write cards of any status with their episodes and history as JSON lines; returns how many."""
        from sqlcrystal.bank import export_jsonl

        chosen = self._one_or_all(database, Scope.MANAGE)
        return export_jsonl(reach.existing_store(self.workspace).bank, out, database=chosen)

    def forget(self, *, question: str | None = None, value: str | None = None, by: str = "") -> "Forgotten":
        """Remove a question or a value wherever it was kept; counts stay."""
        self.caller.require_owner()
        person = self._person(by)
        from sqlcrystal.models.local import delete_beginnings

        delete_beginnings()  # any of them may hold the value, as the profile of a column
        return reach.existing_store(self.workspace).forget(by=person, question=question, value=value)

    # ── tokens ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def recognise(self, token: str) -> Caller | None:
        """Name the holder of a token that stands now."""
        grant = self.store.tokens.recognise(token)
        return None if grant is None else Caller.of(grant)

    def tokens(self) -> list[Grant]:
        """List the tokens that reach no further than the caller manages."""
        from sqlcrystal.serving.callers import tokens_of

        return tokens_of(self.workspace, self.caller)

    def issue_token(
        self,
        person: str,
        databases: Iterable[str] | None = None,
        scopes: Iterable[Scope] = (Scope.ASK, Scope.JUDGE),
        *,
        days: float | None = None,
        for_others: bool = False,
    ) -> IssuedToken:
        """Make a token, shown this once; `for_others` lets a manager make one in another person's name."""
        from sqlcrystal.serving.callers import issue

        return issue(self.workspace, self.caller, person, databases, scopes, days=days, for_others=for_others)

    def end_token(self, token_id: str) -> None:
        """End a token at once, in every process."""
        from sqlcrystal.serving.callers import end

        end(self.workspace, self.caller, token_id)

    def _set_status(
        self,
        status: CardStatus,
        ids: Iterable[str] | None,
        matching: Mapping[str, str | None],
        *,
        by: str,
        reason: str,
    ) -> list[Card]:
        from sqlcrystal.serving import cards

        person = self._person(by)
        filters = {"by" if name == "admitted" else name: value for name, value in matching.items() if value}
        if (ids is None) != bool(filters):
            raise UserError("cards: give either card ids, or one or more of database, signal, by, writer")
        if ids is not None:
            named = [self._card(name, Scope.MANAGE) for name in ids]
            changing = [card for card in named if card.status is not status]
            return cards.set_status(self.workspace, changing, status, by=person, reason=reason)
        database = self._one_or_all(filters.pop("database", None), Scope.MANAGE)
        with self.store.transaction():
            changing = cards.matching_cards(self.workspace, status, {**filters, "database": database})
            return cards.set_status(self.workspace, changing, status, by=person, reason=reason)


def _name(answer: ServedAnswer | str) -> str:
    return answer if isinstance(answer, str) else answer.id
