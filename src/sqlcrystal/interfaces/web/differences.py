"""Two texts beside one another: line by line in one column, or row by row in two."""

from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import NamedTuple

from sqlcrystal.escaping import visible


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
