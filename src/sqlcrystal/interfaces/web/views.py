"""An answer as the templates show it."""

import re
from functools import cached_property
from typing import Any

from markupsafe import Markup
from msgspec import Struct

from sqlcrystal.bank import Scope
from sqlcrystal.interfaces.server.access import Door
from sqlcrystal.interfaces.server.work import Work
from sqlcrystal.interfaces.web.beside import DiffLine, changed_lines, conflict_of, proposal_of
from sqlcrystal.interfaces.web.rendering import signal_words
from sqlcrystal.interfaces.web.tables import charts, holds_page, rows_in_words, table_of
from sqlcrystal.interfaces.web.text import (
    complained_of,
    filtered_on,
    heading,
    literals_holding,
    pretty_sql,
    schema_names,
    show_cell,
)
from sqlcrystal.serving.answers import sureness
from sqlcrystal.serving.demo import ANSWER_KEY, WITH_OTHER_CARDS, WITHOUT_CARDS, WITHOUT_PROFILE
from sqlcrystal.serving.documents import PastAnswer
from sqlcrystal.serving.stories import AnswerStory, CardInUse
from sqlcrystal.types import Cell, Episode, Failure, Rows

PLAYED_BACK = {
    WITHOUT_CARDS: "The recording has no reply with these cards; this is the one the model gave without them.",
    WITH_OTHER_CARDS: "The bank has changed since the recording; this is the reply to the nearest cards it holds.",
    WITHOUT_PROFILE: "Recorded for the schema alone, without a look at what the columns hold.",
}
"""The words that a person should know of a reply that stands in for another."""
MOST_NAMED = 4
"""So many columns are named in a sentence."""


class Step(Struct, frozen=True):
    """One step on the way to an answer."""

    title: str
    sql: str = ""
    said: str = ""


async def answer_view(
    work: Work,
    door: Door,
    answer: str,
    *,
    scope: Scope = Scope.ASK,
    page: int = 1,
    trouble: str = "",
    contradicted: str = "",
) -> "AnswerView":
    """Read an answer for a page; where SQL is run for it, that stands in the line of its database like all SQL."""
    story = await work.read(lambda: door.answer_story(answer, scope))

    def make() -> AnswerView:
        return AnswerView(door, story, page=page, trouble=trouble, contradicted=contradicted)

    if story.proposal_runnable or not holds_page(story, page):
        return await work.run(story.record.database, make)
    return await work.read(make)


class AnswerView:
    """One answer on the page: read from the store, so that a reload asks nothing again."""

    def __init__(
        self, door: Door, story: AnswerStory, *, page: int = 1, trouble: str = "", contradicted: str = ""
    ) -> None:
        """Read what the page needs; `trouble` says why there is no repair, `contradicted` which card is against it."""
        self._record = record = story.record
        self.asked = record.asked
        self.thread = [_turn(past) for past in story.thread] if len(story.thread) > 1 else []
        self.id, self.database, self.question = record.id, record.database, record.question
        self.dialect = story.dialect
        self.names = schema_names(story.tables)
        self.can_judge = story.may_judge
        self.replayed, self.error, self.page = record.replayed, record.error, page
        self.audit = record.audit
        self.sql = pretty_sql(record.sql, self.dialect) if record.sql else ""
        self.editable = self.sql
        self.verdict = story.verdict
        self.person = door.caller.person
        self._trouble, self._contradicted = trouble, contradicted
        self._episode = None if record.learned is not None else story.trace  # nobody repaired what was run
        self.cards = [_used_card(used) for used in story.cards]
        self.exchanged = story.exchanged
        self.told = story.told
        self.definitions = story.definitions
        # An answer is shown to those who may ask, and in the queue to those who may judge it.
        scope = Scope.JUDGE if story.may_judge else Scope.ASK
        self.table = table_of(door, story, scope, page)
        self.proposal = proposal_of(door, story, scope)
        self.given_sql = pretty_sql(story.given_sql, self.dialect) if story.given_sql else ""
        self.matches = any(_same_sql(card["sql"], record.sql) for card in self.cards) and not record.replayed
        self.conflict = conflict_of(story) if self.open else None
        self.near = _near_values(door, self, scope) if self.open and self._found_nothing() else []

    # ── the table ────────────────────────────────────────────────────────────────────────────────────────────────

    columns = property(lambda self: self.table.columns)
    rows = property(lambda self: self.table.rows)
    row_count = property(lambda self: self.table.row_count)
    pages = property(lambda self: self.table.pages)
    first = property(lambda self: self.table.first)
    numeric = property(lambda self: self.table.numeric)
    tiles = property(lambda self: self.table.tiles)
    measures = property(lambda self: self.table.measures)
    row_words = property(lambda self: self.table.row_words)
    in_short = property(lambda self: self.table.in_short)
    rows_kept = property(lambda self: self.table.kept)

    @property
    def sentence(self) -> str:
        """The answer in words, before anything of how it came about."""
        if self.error:
            return "This SQL did not run, so there is no answer." if self.sql else "The model wrote no SQL."
        if not self.row_count:
            return "It ran and found nothing: 0 rows."
        if self.row_count == 1 and len(self.columns) == 1 and self.rows:
            return f"The answer is {show_cell(self.rows[0][0], measure=self.measures[0]).text}."
        if leader := self.table.leader:
            return f"{rows_in_words(self.row_count)}; {leader}."
        columns = [heading(column) for column in self.columns[:MOST_NAMED]]
        if self.row_count == 1 and self.rows:
            columns = [f"{name} {_in_a_sentence(cell)}" for name, cell in zip(columns, self.rows[0], strict=False)]
        more = " and more" if len(self.columns) > len(columns) else ""
        return f"{rows_in_words(self.row_count)}: {', '.join(columns)}{more}."

    def _found_nothing(self) -> bool:
        """Tell whether it ran and gave no rows, or nothing but NULL or zero."""
        shown = not any(cell for row in self.rows for cell in row)
        return (
            bool(self.sql) and not self.error and (not self.row_count or (len(self.rows) == self.row_count and shown))
        )

    def put(self, old: str, new: str) -> None:
        """Have the editor begin with one value in the place of another."""
        from sqlcrystal.databases.spelling import with_value

        self.editable = with_value(self.sql, self.dialect, old, new)

    @property
    def sureness(self) -> str:
        """Say how sure the answer is; nothing where that was not worked out."""
        return sureness(self._record.confidence)

    @property
    def asked_first(self) -> bool:
        """Tell whether the page shows the card that speaks against it, so that a confirmation is one in spite of it."""
        return bool(self._contradicted) or self.conflict is not None

    @property
    def sound(self) -> bool:
        """Tell whether nothing speaks against confirming it at once."""
        settled = not self.repaired and not self.asked_first and not self.read_in_two_ways
        return bool(self.row_count) and not self.error and settled

    @property
    def read_in_two_ways(self) -> bool:
        """Tell whether a person has yet to say which of two readings they mean."""
        return self.open and self.proposal is not None and self.proposal.reads_otherwise

    @cached_property
    def corrected_lines(self) -> list[DiffLine]:
        """From what was answered to what a person made of it."""
        return changed_lines(self.given_sql, self.sql) if self.given_sql else []

    @property
    def export_words(self) -> str:
        """Tell what an export will hold."""
        return rows_in_words(self.row_count)

    @cached_property
    def charts(self) -> dict[str, Markup]:
        """Drawings in every way that suits the rows, by what each is called."""
        return charts(self.columns, self.rows, truncated=len(self.rows) < self.row_count)

    @cached_property
    def literals(self) -> list[str]:
        """Tell what it filtered on, for who wonders why nothing came."""
        return filtered_on(self._record.sql or "", self.dialect)

    @cached_property
    def marks(self) -> list[str]:
        """Tell what of the SQL to look at: a literal that was exchanged, or the name the engine complained of."""
        if self.error:
            return complained_of(self.sql, self.error)
        return literals_holding(self.sql, [new for _, new in self.exchanged])

    @property
    def details(self) -> str:
        """An answer that did not run, as one text for whoever is asked about it."""
        return f"Question: {self.question}\nDatabase: {self.database}\n\n{self.sql}\n\n{self.error}\n"

    # ── how it came about ────────────────────────────────────────────────────────────────────────────────────────

    @property
    def repaired(self) -> bool:
        """Tell whether the SQL that is shown is not the first attempt's."""
        return not self.given_sql and (
            self._episode is not None and bool(self._episode.rounds) and self._episode.attempt.sql != self._record.sql
        )

    @cached_property
    def repair_lines(self) -> list[DiffLine]:
        """From the first attempt to what is shown."""
        if self._episode is None or not self.repaired:
            return []
        return changed_lines(pretty_sql(self._episode.attempt.sql or "", self.dialect), self.sql)

    @property
    def repairs_tried(self) -> str:
        """Tell whether a repair was tried, in words."""
        rounds = len(self._episode.rounds) if self._episode else 0
        if not rounds:
            return "No repair was tried."
        return f"{rounds} repair{' was' if rounds == 1 else 's were'} tried."

    @property
    def reply(self) -> str:
        """Tell what the model said instead of SQL."""
        calls = self._episode.attempt.calls if self._episode is not None and not self.sql else ()
        return calls[-1].completion.text.strip() if calls else ""

    @property
    def origin(self) -> str:
        """With how many cards; a held-out answer reads like one that found none near."""
        if self._record.learned is not None:
            learned = self._record.learned
            where = f" in {learned.places[0]}" if learned.places else ""
            times = f"{learned.uses:,} time{'' if learned.uses == 1 else 's'}"
            return f"from the query log: ran {times}{where}; {learned.model} wrote the question, and it led back here"
        count = len(self.cards)
        return f"with {count} card{'' if count == 1 else 's'}" if count else "no cards used"

    @property
    def seconds(self) -> str:
        """Tell how long it took."""
        return f"{self._record.seconds:.1f} s"

    @property
    def tokens(self) -> str:
        """Tell what it cost."""
        spent = self._record.prompt_tokens + self._record.completion_tokens
        return f"{spent:,} tokens" if spent else ""

    @property
    def notice(self) -> str:
        """Tell what a person should know before they judge."""
        if self._contradicted:
            return self._contradicted
        if self._trouble:
            return f"No repair could be looked for: {self._trouble}"
        if self.replayed and self.cards:
            told = ", ".join(f"{old} → {new}" for old, new in self.exchanged)
            with_others = f" with {told}" if told else ""
            return f"Replayed from card {self.cards[0]['id'][:8]}{with_others}: no model call, run when it was asked."
        calls = self._episode.attempt.calls if self._episode is not None else ()
        return PLAYED_BACK.get(calls[-1].completion.finish_reason, "") if calls else ""

    @cached_property
    def steps(self) -> list[Step]:
        """Attempts and probes, in order; where nothing was tried twice there is nothing to tell."""
        return _steps(self._episode, self.dialect) if self._episode is not None and self._episode.rounds else []

    @property
    def steps_words(self) -> str:
        """The steps in a few words."""
        return f"{self.attempts} attempts{', the last one stands' if self.repaired else ''}"

    @property
    def attempts(self) -> int:
        """Tell how many times SQL was written for it."""
        return 1 + (len(self._episode.rounds) if self._episode else 0)

    # ── the verdict ──────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def state(self) -> str:
        """Waiting, confirmed, rejected or corrected."""
        return str(self.verdict.verdict) if self.verdict else "waiting"

    @property
    def open(self) -> bool:
        """Tell whether it waits for a verdict."""
        return self.verdict is None

    @property
    def card(self) -> str:
        """The card the verdict made."""
        return self.verdict.card if self.verdict is not None and self.verdict.made_card else ""

    @property
    def verdict_words(self) -> str:
        """Tell who said what, and which card came of it."""
        if self.verdict is None:
            return ""
        mine = self.verdict.by == self.person
        who = (
            "you"
            if mine and self.verdict.signal == "user"
            else f"{self.verdict.by} ({signal_words(self.verdict.signal)})"
        )
        if self.verdict.by == ANSWER_KEY:
            who = ANSWER_KEY
        said = f"{self.state.capitalize()} by {who}."
        if self.card:
            return f"{said} Card {self.card[:8]} is in the bank."
        return f"{said} {'A repair is proposed; nothing is banked.' if self.proposal else 'Nothing is banked.'}"

    @property
    def title(self) -> str:
        """Tell what the browser's tab says: the question and how it stands."""
        return f"{self.question} ({'did not run' if self.open and self.error else self.state})"

    @property
    def held_out_words(self) -> str:
        """Told after the verdict only."""
        if self.verdict is None or self._record.memory:
            return ""
        if not self._record.share:
            return "This answer was given without cards, as was asked."
        share = f"{100 * self._record.share:g} % of questions"
        return f"This answer was given without cards, to measure what they are worth ({share})."


def _in_a_sentence(value: Cell) -> str:
    shown = show_cell(value)
    return f"{shown.text}…" if shown.rest else shown.text


def _turn(past: PastAnswer) -> dict[str, str]:
    asked = past.follows.asked if past.follows is not None else past.question
    return {"id": past.id, "asked": asked, "state": past.verdict or "waiting"}


def _near_values(door: Door, view: AnswerView, scope: Scope) -> list[dict[str, Any]]:
    """Offer what may be meant: the question with that value where it holds the other, or else the SQL with it."""
    offers = []
    for each in door.near_values(view.id, scope):
        in_question = re.compile(re.escape(each.value), re.IGNORECASE)
        offers.append(
            {
                "column": f"{each.table}.{each.column}",
                "value": each.value,
                "near": [
                    (near, in_question.sub(lambda _, near=near: near, view.question))  # type: ignore[misc]
                    if in_question.search(view.question)
                    else (near, "")
                    for near in each.near
                ],
                "holds": each.holds,
            }
        )
    return offers


def _used_card(used: CardInUse) -> dict[str, Any]:
    card, effect = used.card, used.effect
    return {
        "id": card.id,
        "score": used.score,
        "question": card.question.text,
        "sql": card.sql,
        "by": card.admission.by,
        "signal": card.admission.signal,
        "at": card.admission.at,
        "effect": f"answers with it: {effect.right} right, {effect.wrong} wrong" if effect else "",
    }


def _same_sql(one: str, other: str | None) -> bool:
    return other is not None and one.strip().rstrip(";").split() == other.strip().rstrip(";").split()


def _steps(episode: Episode, dialect: str) -> list[Step]:
    steps = [Step("First attempt", pretty_sql(episode.attempt.sql or "", dialect))]
    for number, turn in enumerate(episode.rounds, start=2):
        for probe in turn.probes:
            said = probe.execution.message if isinstance(probe.execution, Failure) else _first_rows(probe.execution)
            steps.append(Step("Probe", pretty_sql(probe.sql, dialect), said))
        said = turn.execution.message if isinstance(turn.execution, Failure) else ""
        steps.append(Step(f"Attempt {number}", pretty_sql(turn.sql or "", dialect), said))
    return steps


def _first_rows(rows: Rows) -> str:
    shown = "; ".join(", ".join("NULL" if cell is None else str(cell) for cell in row) for row in rows.rows[:5])
    return f"{shown}{' …' if len(rows.rows) > 5 else ''}"
