"""Words of people: names of tables and columns as they say them, and the terms of a question with their definitions.

A term stands in a question whole, word for word, in the one form in which two words are compared: one is another's
plural, in any case and whatever marks are between. This is the one place that decides about it."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from msgspec.structs import replace

from sqlcrystal.types import CardId, Definition, Question

_PIECES = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+|[^\W_]+")
_KEYS = frozenset({"id", "ids", "code", "key", "no", "number", "nr", "num"})
_LETTER_BEFORE_ID = re.compile(r"\b([a-z]) id\b")
_ASSERTING = frozenset({"is", "has", "was", "had", "can"})
_JOINING = frozenset({"in", "of", "on", "for", "with", "at", "by", "to", "and", "from"})
_IRREGULAR = {"person": "people", "child": "children", "man": "men", "woman": "women", "foot": "feet"}
_SINGULAR = {many: one for one, many in _IRREGULAR.items()}
_UNCHANGED = frozenset(
    {"data", "series", "species", "people", "children", "staff", "equipment", "media", "info", "news", "aircraft"}
)
_MISSPELT = 0.85
_SHORTEST_PLURAL = 4
_LONGEST_ACRONYM = 3


def words(name: str) -> str:
    """Write a name as people would: camel case and underscores become spaces."""
    shouted = name.isupper() and len(name) > _LONGEST_ACRONYM
    pieces = [piece.lower() if shouted or not _is_acronym(piece) else piece for piece in _PIECES.findall(name)]
    told = _LETTER_BEFORE_ID.sub(r"\1ID", " ".join(pieces)) or name
    parts = told.split(" ")
    loose = len(parts) > 1 and (parts[-1] in _JOINING or parts[0] in _ASSERTING)
    return f"“{told}”" if loose else told


def _is_acronym(piece: str) -> bool:
    return piece.isupper() and 1 < len(piece) <= _LONGEST_ACRONYM and piece != "ID"


def plural(noun: str) -> str:
    """Speak of many: the word before a joining one is the noun, in "singer in concert" as in "singer"."""
    parts = noun.split(" ")
    at = next((place for place, part in enumerate(parts) if place and part in _JOINING), len(parts)) - 1
    parts[at] = _many(parts[at])
    return " ".join(parts)


def singular(noun: str) -> str:
    """Speak of one."""
    parts = noun.split(" ")
    at = next((place for place, part in enumerate(parts) if place and part in _JOINING), len(parts)) - 1
    parts[at] = _one(parts[at])
    return " ".join(parts)


def keyness(column: str, table: str) -> int:
    """Tell how surely a column's name says that it tells the rows of a table apart: `id`, or the table's name with it.

    2 is sure, 1 is the last word of the table's name only, 0 is no.
    """
    named, noun = words(column).lower().split(), singular(words(table)).lower().split()
    if not named or named[-1] not in _KEYS:
        return 0
    said = [_one(word) for word in named[:-1]]
    return 2 if not said or said == noun else int(said == noun[-1:])


def stem(word: str) -> str:
    """Give a word without its ending, so that "singers", "singing" and "singer" are the same to a comparison."""
    plain = _one(word.lower())
    for ending in ("ings", "ing", "ers", "er", "ies", "ied", "edly", "ed", "ly", "es", "e", "y", "s"):
        if plain.endswith(ending) and len(plain) - len(ending) >= 3:
            return plain.removesuffix(ending)
    return plain


def stems(text: str) -> frozenset[str]:
    """Give the stems of every word and number in a text."""
    return frozenset(stem(piece) for piece in _PIECES.findall(text))


def near(one: str, other: str) -> bool:
    """Tell whether two stems may be the same word: the same, one begins the other, or hardly a letter differs."""
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    if len(short) >= 4 and long.startswith(short):
        return True
    return len(short) > 4 and short[0] == long[0] and SequenceMatcher(None, one, other).ratio() > _MISSPELT


def meet(some: Iterable[str], others: Iterable[str]) -> bool:
    """Tell whether a stem of the one is near a stem of the other."""
    there = list(others)
    return any(near(one, other) for one in some for other in there)


def _many(word: str) -> str:
    if word in _UNCHANGED or word.isdigit() or len(word) < 2:
        return word
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if _one(word) != word:
        return word
    if word.endswith("y") and word[-2] not in "aeiou":
        return f"{word[:-1]}ies"
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return f"{word}es"
    return f"{word}s"


def _one(word: str) -> str:
    if word in _SINGULAR or word in _UNCHANGED or len(word) < _SHORTEST_PLURAL or not word.endswith("s"):
        return _SINGULAR.get(word, word)
    if word.endswith("ies") and len(word) > _SHORTEST_PLURAL:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "xes", "ches", "shes", "zes")) or re.search(r"[^aeiou]uses$", word):
        return word[:-2]
    if word.endswith(("ss", "us", "is")):
        return word
    return word[:-1]


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
