"""Things beside one another: two texts line by line, and a proposed repair or a near card beside an answer's SQL."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import NamedTuple

from msgspec import Struct

from sqlcrystal.bank import Scope
from sqlcrystal.escaping import visible
from sqlcrystal.interfaces.server.access import Door
from sqlcrystal.interfaces.web.tables import TableView, first_rows
from sqlcrystal.interfaces.web.text import pretty_sql
from sqlcrystal.serving.documents import Result
from sqlcrystal.serving.stories import AnswerStory


class DiffLine(NamedTuple):
    """One line of a diff: its class, its sign, what a screen reader says, and the text."""

    kind: str
    sign: str
    spoken: str
    text: str


class DiffRow(NamedTuple):
    """One row of a diff in two columns; a side without a line has none."""

    before: DiffLine | None
    after: DiffLine | None


def changed_lines(before: str, after: str) -> list[DiffLine]:
    """A unified diff of two texts, whole."""
    lines: list[DiffLine] = []
    for same, old, new in _blocks(before, after):
        lines += [_same(line) for line in old] if same else [*map(_removed, old), *map(_added, new)]
    return lines


def side_by_side(before: str, after: str) -> list[DiffRow]:
    """The same in two columns, whole: what changed stands beside what it became."""
    rows: list[DiffRow] = []
    for same, old, new in _blocks(before, after):
        if same:
            rows += [DiffRow(_same(line), _same(line)) for line in old]
            continue
        for left, right in zip_longest(old, new):
            rows.append(DiffRow(None if left is None else _removed(left), None if right is None else _added(right)))
    return rows


def _blocks(before: str, after: str) -> Iterator[tuple[bool, list[str], list[str]]]:
    old, new = visible(before).splitlines(), visible(after).splitlines()
    for tag, start, end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        yield tag == "equal", old[start:end], new[new_start:new_end]


def _same(line: str) -> DiffLine:
    return DiffLine("same", "", "", line)


def _removed(line: str) -> DiffLine:
    return DiffLine("del", "-", "removed: ", line)


def _added(line: str) -> DiffLine:
    return DiffLine("add", "+", "added: ", line)


class ProposalView(Struct, frozen=True, kw_only=True):
    """A repair's SQL beside the one that was rejected."""

    id: str
    sql: str
    lines: Sequence[DiffLine]
    table: TableView
    note: str = ""
    question: str = ""
    """The question that it answers, where a note made it another."""
    error: str = ""
    words: str = ""
    reads_otherwise: bool = False
    """True for the second reading of the question, which is no repair."""

    columns = property(lambda self: self.table.columns)
    rows = property(lambda self: self.table.rows)
    row_count = property(lambda self: self.table.row_count)
    numeric = property(lambda self: self.table.numeric)
    tiles = property(lambda self: self.table.tiles)
    measures = property(lambda self: self.table.measures)
    row_words = property(lambda self: self.table.row_words)
    in_short = property(lambda self: self.table.in_short)
    pages, first = 1, 1


class ConflictView(Struct, frozen=True, kw_only=True):
    """A near card whose rows are others, and the clauses in which its SQL differs."""

    card: str
    question: str
    clauses: Sequence[str]
    lines: Sequence[DiffLine]


def proposal_of(door: Door, story: AnswerStory, scope: Scope) -> ProposalView | None:
    """Show the latest proposal for an answer that is not decided on, run behind the guard."""
    proposal, record = story.proposal, story.record
    if proposal is None:
        return None
    result = Result()
    if story.proposal_runnable:
        result = door.run(proposal.sql, record.database, scope=scope)
    return ProposalView(
        id=proposal.id,
        sql=proposal.sql,
        lines=changed_lines(pretty_sql(record.sql or "", story.dialect), pretty_sql(proposal.sql, story.dialect)),
        table=first_rows(result),
        note=proposal.note,
        question=proposal.question,
        error=result.error,
        words=result.words,
        reads_otherwise=proposal.id == record.other,
    )


def conflict_of(story: AnswerStory) -> ConflictView | None:
    """Show the near card that disagrees, where the answer was kept with one."""
    from sqlcrystal.writing.diff import diff

    record, dialect = story.record, story.dialect
    used = next((use for use in story.cards if record.conflict and use.score == record.conflict), None)
    if used is None or record.sql is None:
        return None
    card = used.card
    return ConflictView(
        card=card.id,
        question=card.question.text,
        clauses=[each.clause for each in diff(card.sql, record.sql, dialect)],
        lines=changed_lines(pretty_sql(card.sql, dialect), pretty_sql(record.sql, dialect)),
    )
