"""A schema too large for a prompt, narrowed to the tables a question needs: by meaning, by words, by foreign keys."""

import logging
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sqlcrystal.protocols import Embedder
from sqlcrystal.types import Question, Table

_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+|\d+")
_WORD = re.compile(r"[^\W_]+")
_PLURALS = (("ies", "y"), ("es", ""), ("s", ""))


class Narrowing:
    """Ranks the tables of one schema; built once per schema, asked once per question."""

    def __init__(self, tables: Sequence[Table], embedder: Embedder) -> None:
        """Embed every table and every column, and weigh their words."""
        self._all = tuple(tables)
        self._tables = [table for table in tables if table.kind != "type"]
        self._embedder = embedder
        self._whole = embedder.embed([_as_text(table) for table in self._tables])
        parts = [(place, part) for place, table in enumerate(self._tables) for part in _parts(table)]
        self._owner = np.array([place for place, _ in parts], dtype=np.intp)
        self._parts = embedder.embed([part for _, part in parts])
        self._lexicon = _Lexicon([_stems(f"{_as_text(table)} {_named(table.name)}") for table in self._tables])
        self._neighbours = _neighbours(self._tables)

    def choose(self, question: Question, *, width: int) -> tuple[Table, ...]:
        """Choose at most so many tables, in the order the schema shows them, with the types they use.

        Half are those that score best; the rest are first what foreign keys join to them, since a question seldom names
        the table between two others, then the next best.
        """
        if len(self._tables) <= width:
            return self._all
        scores = self._scores(f"{question.text} {question.evidence}".strip())
        ranked = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
        chosen = ranked[: (width + 1) // 2]
        joined: dict[int, float] = {}
        for place in chosen:
            for other in self._neighbours[place]:
                joined[other] = max(joined.get(other, -np.inf), scores[place] + scores[other])
        beside = sorted(joined, key=lambda place: (-joined[place], place))
        shown = set(list(dict.fromkeys([*chosen, *beside, *ranked]))[:width])
        named = {self._tables[place].name for place in shown}
        words = {word for place in shown for word in _WORD.findall(self._tables[place].definition)}
        return tuple(
            table for table in self._all if (table.name in words if table.kind == "type" else table.name in named)
        )

    def _scores(self, text: str) -> NDArray[np.float64]:
        """Sum three views of each table, each between its worst and its best: whole, closest part, words."""
        query = self._embedder.embed([text])[0]
        closest = np.full(len(self._tables), -np.inf)
        np.maximum.at(closest, self._owner, (self._parts @ query).astype(np.float64))
        views = ((self._whole @ query).astype(np.float64), closest, self._lexicon.scores(_stems(text)))
        whole, part, words = map(_between_0_and_1, views)
        return whole + part + words


class _Lexicon:
    """BM25 over the words of each table."""

    def __init__(self, documents: Sequence[Sequence[str]]) -> None:
        import bm25s

        logging.getLogger("bm25s").setLevel(logging.WARNING)  # it sets itself to DEBUG, and fills stderr
        self._size = len(documents)
        self._known = {word for document in documents for word in document}
        self._model = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
        self._model.index([list(document) or [""] for document in documents], show_progress=False)

    def scores(self, words: Sequence[str]) -> NDArray[np.float64]:
        known = [word for word in words if word in self._known]
        return np.asarray(self._model.get_scores(known), np.float64) if known else np.zeros(self._size)


def _as_text(table: Table) -> str:
    columns = ", ".join(f"{_named(column.name)} {column.comment}".strip() for column in table.columns)
    return f"{_named(table.name)} {table.comment}: {columns}"


def _parts(table: Table) -> list[str]:
    """Name the table alone, and with each of its columns."""
    name = _named(table.name)
    return [name, *(f"{name} {_named(column.name)} {column.comment}".strip() for column in table.columns)]


def _named(name: str) -> str:
    """Split snake_case and camelCase into words."""
    return " ".join(_PIECE.findall(name)).lower()


def _stems(text: str) -> list[str]:
    """Strip English plural endings, which names and questions seldom agree on, from words."""
    return [_stem(word) for word in _WORD.findall(text.lower())]


def _stem(word: str) -> str:
    for ending, instead in _PLURALS:
        if word.endswith(ending) and len(word) > len(ending) + 2:
            return word.removesuffix(ending) + instead
    return word


def _neighbours(tables: Sequence[Table]) -> list[set[int]]:
    """Find the tables that foreign keys join, in either direction."""
    places = {table.name.lower(): place for place, table in enumerate(tables)}
    beside: list[set[int]] = [set() for _ in tables]
    for place, table in enumerate(tables):
        for name in table.references:
            other = places.get(name.lower())
            if other is not None and other != place:
                beside[place].add(other)
                beside[other].add(place)
    return beside


def _between_0_and_1(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    lowest, highest = scores.min(), scores.max()
    return (scores - lowest) / (highest - lowest) if highest > lowest else np.zeros_like(scores)
