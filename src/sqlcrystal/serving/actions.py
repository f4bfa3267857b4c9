"""The actions of `Crystal` beside those on answers and cards: the worth of memory, and definitions."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from sqlcrystal.bank import Entry, ProposedDefinition, Scope
from sqlcrystal.errors import BankError, NotFound, UserError
from sqlcrystal.serving import reach
from sqlcrystal.serving.documents import DefinitionProposal, DefinitionsImported
from sqlcrystal.serving.reach import ReachedTeam
from sqlcrystal.types import Card, CardKind, CardStatus, Definition

if TYPE_CHECKING:
    from sqlcrystal.querylog.definitions import Defined
    from sqlcrystal.serving.lift import MeasuringChoice
    from sqlcrystal.serving.own_tests import OwnTest, TestResult
    from sqlcrystal.serving.refit import TeamConfidence
    from sqlcrystal.serving.value import Look, Value


class Worth(ReachedTeam):
    """The worth of memory to a team, and its measurement."""

    def value(self, database: str | None = None, *, effect_pp: float | None = None, since: str = "") -> "list[Value]":
        """Say what memory is worth: the live lift with its interval, its cost, which cards earn, if it is known yet."""
        from sqlcrystal.serving.value import values

        if not self.workspace.store_exists():
            return []
        name = self._one_or_all(database)
        return values(self.store, prices=self.prices, database=name, effect_pp=effect_pp, since=since)

    def refit(self, database: str | None = None) -> "TeamConfidence":
        """Refit now how sure answers of a database are told to be, from all verdicts on them."""
        from sqlcrystal.serving.refit import refit_now

        return refit_now(reach.existing_store(self.workspace), self.database(database, Scope.MANAGE))

    def trend(self, database: str | None = None) -> "list[Look]":
        """Give the live lift of a database as it stood after so many verdicts."""
        from sqlcrystal.serving.value import trend

        return trend(self.store, self.database(database))

    def judged(self, database: str | None = None) -> list[bool]:
        """Tell of each verdict that stands, in order, whether it found the answer right."""
        return [verdict.right for verdict in self.store.answers.judged(database=self.database(database))]

    def measuring(self, database: str | None = None) -> "tuple[MeasuringChoice, ...]":
        """Give the ways to measure memory over a database: what each costs, when it will tell, which is on."""
        from sqlcrystal.serving.lift import choices

        return choices(self.workspace, self.database(database))

    def measure(self, kind: str, database: str | None = None, *, by: str = "") -> "MeasuringChoice":
        """Measure memory from now on in one of those ways, in every process; it goes before the settings."""
        from sqlcrystal.serving.lift import choose

        name = self.database(database, Scope.MANAGE)
        return choose(self.workspace, name, kind, by=self._named(by))

    def test(self, tests: "Iterable[OwnTest]", database: str | None = None) -> "list[TestResult]":
        """Ask the team's own tests with memory and without; nothing is kept of it."""
        from sqlcrystal.serving.own_tests import run_tests

        return run_tests(self.workspace, tests, choose=lambda name: self.database(name or database))

    def make_benchmark(self, folder: Path, database: str | None = None) -> int:
        """Write the confirmed answers as a benchmark of one's own; returns how many."""
        from sqlcrystal.serving.own_tests import make_benchmark

        chosen = self._one_or_all(database, Scope.MANAGE)
        return make_benchmark(reach.existing_store(self.workspace), folder, database=chosen)


class Defining(Worth):
    """Terms, and their meanings, that a team tells the model; only a person's word makes one."""

    def definitions(self, database: str | None = None, *, status: CardStatus | str | None = None) -> list[Card]:
        """List the definitions of one database or of all, in the order they were written."""
        if not self.workspace.store_exists():
            return []
        chosen = CardStatus(status) if status else None
        return self.store.bank.find(database=self._one_or_all(database), status=chosen, kind=CardKind.DEFINITION)

    def definition(self, card_id: str) -> Entry:
        """Give one definition with its history."""
        card = self._definition(card_id, Scope.ASK)
        return Entry(card=card, history=self.store.bank.history(card.id))

    def define(
        self,
        term: str,
        sql: str,
        database: str | None = None,
        *,
        tables: Sequence[str] = (),
        synonyms: Sequence[str] = (),
        meaning: str = "",
        by: str = "",
    ) -> Card:
        """Tell the model from now on what a term means; the expression is run over its tables first."""
        from sqlcrystal.serving import definitions

        person, name = self._person(by), self.database(database, Scope.MANAGE)
        given = Definition(term=term, sql=sql, tables=tuple(tables), synonyms=tuple(synonyms), meaning=meaning)
        return definitions.define(self.workspace, self.workspace.open(name), given, by=person)

    def redefine(
        self,
        card_id: str,
        *,
        term: str | None = None,
        sql: str | None = None,
        tables: Sequence[str] | None = None,
        synonyms: Sequence[str] | None = None,
        meaning: str | None = None,
        reason: str = "",
        by: str = "",
    ) -> Card:
        """Change parts of a definition; new SQL is run first, and its writer vouches for it."""
        from sqlcrystal.serving import definitions

        person, card = self._person(by), self._definition(card_id, Scope.MANAGE)
        changes = _given(term=term, sql=sql, tables=tables, synonyms=synonyms, meaning=meaning)
        return definitions.redefine(self.workspace, card, changes, by=person, reason=reason)

    def import_definitions(
        self, given: "str | Iterable[Defined]", database: str | None = None, *, name: str = "import", by: str = ""
    ) -> DefinitionsImported:
        """Keep every definition of a CSV's text, all or none, in the caller's name."""
        from sqlcrystal.querylog.definitions import read_definitions
        from sqlcrystal.serving import definitions

        person, chosen = self._person(by), self.database(database, Scope.MANAGE)
        rows = read_definitions(given, name) if isinstance(given, str) else given
        return definitions.import_all(self.workspace, chosen, rows, by=person, name=name)

    def export_definitions(self, out: BinaryIO, database: str | None = None) -> int:
        """Write the definitions that are served as a CSV that can be imported; returns how many."""
        from sqlcrystal.querylog.definitions import write_definitions

        reach.existing_store(self.workspace)
        chosen = self._one_or_all(database, Scope.MANAGE)
        cards = self.definitions(chosen, status=CardStatus.ACTIVE)
        rows = [(card.database, card.definition) for card in cards if card.definition is not None]
        out.write(write_definitions(rows).encode())
        return len(rows)

    def propose_definitions(
        self, database: str | None = None, *, source: Path | str | None = None
    ) -> list[DefinitionProposal]:
        """Propose filters that cards share and no question says; or what `comments` or a dbt project's folder tell."""
        from sqlcrystal.serving import definitions

        name = self.database(database, Scope.MANAGE)
        if source is not None and str(source) != definitions.COMMENTS and not self.caller.local:
            raise UserError("source: only the owner of the machine may name a folder")
        opened = self.workspace.open(name)
        return definitions.propose(self.workspace, opened, definitions.found(self.workspace, opened, source))

    def definition_proposals(self, database: str | None = None) -> list[DefinitionProposal]:
        """List the proposed definitions that wait for a person, oldest first."""
        if not self.workspace.store_exists():
            return []
        from sqlcrystal.serving.definitions import told

        name = self._one_or_all(database, Scope.JUDGE)
        return [told(self.workspace, each) for each in self.store.proposed_definitions.waiting(name)]

    def confirm_definition(
        self,
        proposal: str,
        *,
        term: str | None = None,
        sql: str | None = None,
        tables: Sequence[str] | None = None,
        synonyms: Sequence[str] | None = None,
        meaning: str | None = None,
        by: str = "",
    ) -> Card:
        """Vouch for a proposed definition, under the term and words that are given; from now on the model is told."""
        from sqlcrystal.serving import definitions

        person = self._person(by)
        changes = _given(term=term, sql=sql, tables=tables, synonyms=synonyms, meaning=meaning)
        return definitions.confirm(self.workspace, self._proposed(proposal), changes, by=person)

    def reject_definition(self, proposal: str, *, by: str = "") -> DefinitionProposal:
        """Say that a proposal defines nothing; it is not proposed again."""
        from sqlcrystal.serving import definitions

        person, proposed = self._person(by), self._proposed(proposal)
        definitions.reject(self.workspace, proposed, by=person)
        return definitions.told(self.workspace, proposed)

    def _definition(self, card_id: str, scope: Scope) -> Card:
        card = self._card(card_id, scope)
        if card.definition is None:
            raise NotFound(f"no definition {card_id[:40]!r} here, or not for you")
        return card

    def _proposed(self, name: str) -> ProposedDefinition:
        """Find a proposed definition by its id; at the keyboard also by the start of it."""
        missing = NotFound(f"no proposed definition {name[:40]!r} here, or not for you")
        try:
            proposed = reach.existing_store(self.workspace).proposed_definitions.get(name)
        except BankError as error:
            raise (NotFound(str(error)) if self.caller.local else missing) from None
        if not self.caller.local and (proposed.id != name or not self.caller.sees(proposed.database)):
            raise missing
        self.caller.require(proposed.database, Scope.JUDGE, sought="proposed definition")
        return proposed


def _given(**parts: Any) -> dict[str, Any]:
    """Keep the parts that were given; lists become tuples, as definitions hold them."""
    kept = {name: part for name, part in parts.items() if part is not None}
    return {name: part if isinstance(part, str) else tuple(part) for name, part in kept.items()}
