"""What a caller may name of an open team: databases, answers and cards, and which cells of them they see."""

from collections.abc import Iterable

from msgspec.structs import replace

from sqlcrystal.bank import AnswerRecord, Scope
from sqlcrystal.serving import lookups
from sqlcrystal.serving.answers import ServedAnswer
from sqlcrystal.serving.documents import PastAnswer
from sqlcrystal.serving.open_team import OpenTeam
from sqlcrystal.types import Card


class ReachedTeam(OpenTeam):
    """An open team as far as its caller reaches; `Crystal` adds the actions."""

    def database(self, name: str | None = None, scope: Scope = Scope.ASK) -> str:
        """Name the database that is meant: the one named, or the only one that the caller sees."""
        return lookups.database_for(self.workspace, self.caller, name, scope)

    def database_asked(self, name: str | None, follow: str = "") -> str:
        """Name the database of a question: the one named, or that of the answer it goes on from, or the only one."""
        return self.database_of(follow, Scope.ASK) if follow and name is None else self.database(name)

    def database_names(self, scope: Scope | None = None) -> list[str]:
        """Name the databases that exist for the caller, or on which they have a scope."""
        seen = self.caller.seen(self.workspace.names())
        return seen if scope is None else [name for name in seen if self.caller.allows(name, scope)]

    def database_of(self, answer: str, scope: Scope = Scope.JUDGE) -> str:
        """Name the database of an answer or a proposal."""
        if answer.startswith(lookups.PROPOSAL_MARK) and not self.caller.local:
            return lookups.proposal_for(self.workspace, self.caller, answer).database
        return lookups.answer_for(self.workspace, self.caller, answer, scope).database

    def _judged(self, name: str, person: str) -> AnswerRecord:
        return lookups.answer_for(self.workspace, self.caller, name, Scope.JUDGE, person=person)

    def _card(self, name: str, scope: Scope) -> Card:
        return lookups.card_for(self.workspace, self.caller, name, scope)

    def _one_or_all(self, database: str | None, scope: Scope = Scope.ASK) -> str | None:
        """Name one database, or none for all of them: at the keyboard all may be meant, elsewhere one must be."""
        if self.caller.local:
            return None if database is None else lookups.kept_database(self.workspace, database)
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
