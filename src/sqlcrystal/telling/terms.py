"""Terms of a question, and their definitions beside it: the one place that decides whether a term stands in a question.

A term stands there whole, word for word; one word is another's plural, in any case and whatever marks are between.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from sqlcrystal.telling.names import singular
from sqlcrystal.types import CardId, Definition, Question

MOST = 8
"""Definitions that one question is told; of more, those with the longest names, which say most."""
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
"""A word; of scripts that put no space between words, each letter counts as one."""


class Meant(NamedTuple):
    """A definition whose term stands in a question, under the name that stands there."""

    name: str
    definition: Definition
    card: CardId

    @property
    def line(self) -> str:
        """Write it as prompts show it."""
        return line_of(self.name, self.definition)


class Glossary:
    """The definitions of one database, looked up by the words of a question."""

    def __init__(self, definitions: Iterable[tuple[CardId, Definition]]) -> None:
        """Take each definition with the id of its card."""
        self._by_first: dict[str, list[tuple[tuple[str, ...], Meant]]] = defaultdict(list)
        for card, definition in definitions:
            for name in definition.names:
                if words := words_of(name):
                    self._by_first[words[0]].append((words, Meant(name, definition, card)))

    def found(self, text: str) -> tuple[Meant, ...]:
        """Give the definitions whose term or synonym stands in a text, in the order of the text, each once.

        A name within a longer one is not meant: "active customer" says nothing of "customer".
        """
        said = words_of(text)
        found: list[tuple[int, int, Meant]] = []
        reached = 0
        for place, word in enumerate(said):
            fitting = [(len(words), meant) for words, meant in self._by_first.get(word, ()) if _at(said, place, words)]
            longest = max((length for length, _ in fitting), default=0)
            if place + longest > reached:
                found += [(place, length, meant) for length, meant in fitting if length == longest]
                reached = place + longest
        first = {meant.card: (place, length, meant) for place, length, meant in reversed(found)}
        chosen = sorted(first.values(), key=lambda each: (-each[1], each[0]))[:MOST]
        return tuple(meant for place, _, meant in sorted(chosen, key=lambda each: each[0]))


def _at(said: tuple[str, ...], place: int, words: tuple[str, ...]) -> bool:
    return said[place : place + len(words)] == words


NO_TERMS = Glossary(())


def explained(question: Question, meant: Sequence[Meant]) -> Question:
    """Put definitions beside a question, where a benchmark's evidence stands."""
    if not meant:
        return question
    lines = [*filter(None, [question.evidence.strip()]), *(each.line for each in meant)]
    return replace(question, evidence="\n".join(lines))


def line_of(name: str, definition: Definition) -> str:
    """Write a definition on one line, under one of its names."""
    meaning = f": {_one_line(definition.meaning)}" if definition.meaning.strip() else ""
    return f'"{_one_line(name)}" refers to {definition.sql} ({", ".join(definition.tables)}){meaning}'


def words_of(text: str) -> tuple[str, ...]:
    """Split a text into words in the form in which they are compared: lower case, and in the singular."""
    return tuple(singular(word) for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def _one_line(text: str) -> str:
    return " ".join(text.split())
