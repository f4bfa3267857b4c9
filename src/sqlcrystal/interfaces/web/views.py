"""What the templates show of an answer, in their words."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from msgspec import Struct

from sqlcrystal.bank import AnswerRecord, Decision, Scope, Verdict
from sqlcrystal.bank.records import JUDGED
from sqlcrystal.errors import BankError
from sqlcrystal.interfaces.server.access import Caller
from sqlcrystal.interfaces.server.reach import known_card
from sqlcrystal.interfaces.web.charts import chart
from sqlcrystal.interfaces.web.text import DiffLine, changed_lines, pretty_sql, short_literals
from sqlcrystal.types import Episode, Execution, Failure, Row, Rows

if TYPE_CHECKING:
    from sqlcrystal.serving import Crystal

PAGE_ROWS = 100


class Step(Struct, frozen=True):
    """One step on the way to an answer."""

    title: str
    sql: str = ""
    said: str = ""


class TableView(Struct, frozen=True, kw_only=True):
    """Rows as a table shows them."""

    columns: Sequence[str]
    rows: Sequence[Row]
    row_count: int
    page: int = 1

    @property
    def pages(self) -> int:
        """How many pages of a hundred rows there are."""
        return max(1, -(-self.row_count // PAGE_ROWS))

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers only."""
        return [
            any(row[at] is not None for row in self.rows)
            and all(row[at] is None or isinstance(row[at], int | float) for row in self.rows)
            for at in range(len(self.columns))
        ]

    @property
    def row_words(self) -> str:
        """How many rows there are, and whether all are shown."""
        count = f"{self.row_count:,} row{'' if self.row_count == 1 else 's'}"
        if len(self.rows) >= self.row_count:
            return count
        first = (self.page - 1) * PAGE_ROWS + 1
        return f"Rows {first:,} to {first + len(self.rows) - 1:,} of {self.row_count:,}"


class ProposalView(Struct, frozen=True, kw_only=True):
    """What a repair came to, beside what was rejected."""

    id: str
    sql: str
    lines: Sequence[DiffLine]
    columns: Sequence[str] = ()
    rows: Sequence[Row] = ()
    row_count: int = 0
    error: str = ""

    @property
    def table(self) -> TableView:
        """Its rows."""
        return TableView(columns=self.columns, rows=self.rows, row_count=self.row_count)

    numeric = property(lambda self: self.table.numeric)
    row_words = property(lambda self: self.table.row_words)
    pages = 1


class AnswerView:
    """One answer on the page: read from the store, so that a reload asks nothing again."""

    def __init__(self, crystal: "Crystal", caller: Caller, record: AnswerRecord, *, page: int = 1) -> None:
        """Read what the page needs."""
        self._record = record
        self.id, self.database, self.question = record.id, record.database, record.question
        self.dialect = crystal.desk.site(record.database).database.dialect
        self.can_judge = caller.allows(record.database, Scope.JUDGE)
        self.replayed, self.error, self.page = record.replayed, record.error, page
        self.sql = pretty_sql(record.sql, self.dialect) if record.sql else ""
        self.editable = self.sql
        self.verdict = _standing(crystal, record)
        self.caller = caller
        self._episode = crystal.store.answers.trace(record.id)
        self.cards = _used_cards(crystal, record)
        self.table = _table(crystal, record, page)
        self.proposal = _proposal(crystal, record)

    # ── the table ────────────────────────────────────────────────────────────────────────────────────────────────

    columns = property(lambda self: self.table.columns)
    rows = property(lambda self: self.table.rows)
    row_count = property(lambda self: self.table.row_count)
    pages = property(lambda self: self.table.pages)
    numeric = property(lambda self: self.table.numeric)
    row_words = property(lambda self: self.table.row_words)

    @property
    def export_words(self) -> str:
        """What an export will hold."""
        return f"{self.row_count:,} row{'' if self.row_count == 1 else 's'}"

    @property
    def chart(self) -> Markup | None:
        """A drawing, where the rows suit one."""
        return chart(self.columns, self.rows, truncated=len(self.rows) < self.row_count)

    @property
    def literals(self) -> list[str]:
        """What it filtered on, for who wonders why nothing came."""
        return short_literals(self.sql)

    # ── how it came about ────────────────────────────────────────────────────────────────────────────────────────

    @property
    def repaired(self) -> bool:
        """Whether the SQL that is shown is not the first attempt's."""
        return (
            self._episode is not None and bool(self._episode.rounds) and self._episode.attempt.sql != self._record.sql
        )

    @property
    def origin(self) -> str:
        """With how many cards; a held-out answer reads like one that found none near."""
        count = len(self.cards)
        return f"with {count} card{'' if count == 1 else 's'}" if count else "no cards used"

    @property
    def seconds(self) -> str:
        """How long it took."""
        return f"{self._record.seconds:.1f} s"

    @property
    def tokens(self) -> str:
        """What it cost."""
        spent = self._record.prompt_tokens + self._record.completion_tokens
        return f"{spent:,} tokens" if spent else ""

    @property
    def notice(self) -> str:
        """What a person should know before they judge."""
        if self.replayed and self.cards:
            return f"Replayed from card {self.cards[0]['id'][:8]}, no model call, run just now."
        calls = self._episode.attempt.calls if self._episode is not None else ()
        if calls and calls[-1].completion.finish_reason == "recorded without these cards":
            return "The recording has no reply with these cards; this is the one the model gave without them."
        return ""

    @property
    def steps(self) -> list[Step]:
        """Attempts and probes, in order; where nothing was tried twice there is nothing to tell."""
        return _steps(self._episode, self.dialect) if self._episode is not None and self._episode.rounds else []

    @property
    def steps_words(self) -> str:
        """The steps in a few words."""
        rounds = len(self._episode.rounds) if self._episode else 0
        return f"{1 + rounds} attempt{'' if not rounds else 's'}{', repaired' if self.repaired else ''}"

    # ── the verdict ──────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def state(self) -> str:
        """Waiting, confirmed, rejected or corrected."""
        return str(self.verdict.verdict) if self.verdict else "waiting"

    @property
    def open(self) -> bool:
        """Whether it waits for a verdict."""
        return self.verdict is None

    @property
    def card(self) -> str:
        """The card the verdict made."""
        made = self.verdict is not None and self.verdict.verdict in {Verdict.CONFIRMED, Verdict.CORRECTED}
        return self.verdict.card if made and self.verdict else ""

    @property
    def verdict_words(self) -> str:
        """Who said what, and which card came of it."""
        if self.verdict is None:
            return ""
        mine = self.verdict.by == self.caller.person
        who = "you" if mine and self.verdict.signal == "user" else f"{self.verdict.by} ({self.verdict.signal})"
        said = f"{self.state.capitalize()} by {who}."
        if self.card:
            return f"{said} Card {self.card[:8]} is in the bank."
        return f"{said} {'A repair is proposed; nothing is banked.' if self.proposal else 'Nothing is banked.'}"

    @property
    def held_out_words(self) -> str:
        """Told after the verdict only."""
        if self.verdict is None or self._record.memory:
            return ""
        return "This answer was given without cards, to measure what they are worth."


def _standing(crystal: "Crystal", record: AnswerRecord) -> Decision | None:
    standing = crystal.store.decisions.standing(record.id)
    return standing if standing is not None and standing.verdict in JUDGED else None


def _used_cards(crystal: "Crystal", record: AnswerRecord) -> list[dict[str, Any]]:
    effects = {effect.card: effect for effect in crystal.store.answers.effects(record.database)} if record.cards else {}
    found = []
    for use in record.cards:
        card = known_card(crystal, use.card)
        if card is None:
            continue
        effect = effects.get(card.id)
        words = f"{effect.right} right, {effect.wrong} wrong so far" if effect else ""
        found.append(
            {
                "id": card.id,
                "score": use.score,
                "question": card.question.text,
                "by": card.admission.by,
                "signal": card.admission.signal,
                "effect": words,
            }
        )
    return found


def _table(crystal: "Crystal", record: AnswerRecord, page: int) -> TableView:
    kept = record.rows
    if page == 1 and kept is not None and len(kept) >= min(record.row_count, PAGE_ROWS):
        return TableView(columns=record.columns, rows=kept[:PAGE_ROWS], row_count=record.row_count)
    # What is not kept is read again: behind the guard, without a model.
    execution = run_again(crystal, record)
    if isinstance(execution, Failure):
        return TableView(columns=record.columns, rows=(), row_count=record.row_count)
    page = min(max(1, page), max(1, -(-len(execution.rows) // PAGE_ROWS)))
    shown = execution.rows[(page - 1) * PAGE_ROWS : page * PAGE_ROWS]
    return TableView(columns=execution.columns, rows=shown, row_count=len(execution.rows), page=page)


def run_again(crystal: "Crystal", record: AnswerRecord) -> Execution:
    """An answer's SQL on the database as it is now."""
    if record.sql is None or record.error:
        return Rows(columns=(), rows=())
    return crystal.run(record.sql, record.database)


def _proposal(crystal: "Crystal", record: AnswerRecord) -> ProposalView | None:
    try:
        found = crystal.store.decisions.proposals(answer=record.id)
    except BankError:
        return None
    if not found:
        return None
    proposal = found[-1]
    dialect = crystal.desk.site(record.database).database.dialect
    sql = pretty_sql(proposal.sql, dialect)
    lines = changed_lines(pretty_sql(record.sql or "", dialect), sql)
    execution = crystal.run(proposal.sql, record.database)
    if isinstance(execution, Failure):
        return ProposalView(id=proposal.id, sql=proposal.sql, lines=lines, error=execution.message)
    return ProposalView(
        id=proposal.id,
        sql=proposal.sql,
        lines=lines,
        columns=execution.columns,
        rows=execution.rows[:PAGE_ROWS],
        row_count=len(execution.rows),
    )


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
