"""Retrieval by words: BM25 over the questions of the same database; needs no model at all."""

import logging
import re
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sqlcrystal.consumption.retriever import Excluded, NamedRetriever, Reach, Roster, Snapshots, checked_width, highest
from sqlcrystal.errors import ConfigError
from sqlcrystal.protocols import Bank
from sqlcrystal.types import Card, Question, Retrieved

STOPWORDS = "english"
_WORD = re.compile(r"\b\w\w+\b")
"""bm25s's own pattern: its tokeniser sets up two progress bars at each call, which costs more than the search."""


class LexicalIndex:
    """bm25s over one snapshot: Lucene's BM25, k1 = 1.5, b = 0.75, English stop words left out, no stemming."""

    def __init__(self, cards: Sequence[Card]) -> None:
        """Tokenise and weigh every question."""
        self.roster = Roster(cards)
        bm25s = _bm25s()
        texts = [card.question.text for card in self.roster.cards]
        tokens = bm25s.tokenize(texts, stopwords=STOPWORDS, token_pattern=_WORD.pattern, show_progress=False)
        self._words = tokens.vocab
        self._model = None
        if self._words:  # bm25s cannot index texts without a single word
            self._model = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
            self._model.index(tokens, create_empty_token=False, show_progress=False)

    def search(self, text: str, k: int, exclude: Excluded) -> list[Retrieved]:
        """Find the k cards that share most with the text; cards that share nothing score 0 and come last."""
        scores = self.roster.without(self.scores(text), exclude)
        places = highest(scores, k)
        return self.roster.ranked(places, scores[places].astype(np.float64), k)

    def scores(self, text: str) -> NDArray[np.float32]:
        """Score every card, in the order of their ids."""
        # Stop words need no test of their own: they were left out of the index.
        word_ids = [self._words[word] for word in _WORD.findall(text.lower()) if word in self._words]
        if self._model is None or not word_ids:
            return np.zeros(len(self.roster.cards), dtype=np.float32)
        scores: NDArray[np.float32] = self._model.get_scores_from_ids(word_ids)
        return scores


class Bm25(NamedRetriever):
    """Same database, by the words that questions share."""

    name: ClassVar[str] = "bm25"
    summary: ClassVar[str] = "cards nearest in words, same database"

    def __init__(self) -> None:
        """Build each index when it is first asked for; that the package is missing is told now."""
        _bm25s()
        self._snapshots = Snapshots(LexicalIndex)

    @classmethod
    def of(cls, reach: Reach) -> Self:  # noqa: ARG003
        """Make the retriever, which needs nothing."""
        return cls()

    def retrieve(self, question: Question, bank: Bank, *, k: int, exclude: Excluded = None) -> Sequence[Retrieved]:
        """Bring at most k cards of the question's database, the most words in common first."""
        cards = bank.cards(question.database)
        if not checked_width(k) or not cards:
            return []
        return self._snapshots.index(cards).search(question.text, k, exclude)


def _bm25s() -> Any:
    try:
        import bm25s
    except ImportError as error:
        raise ConfigError("retriever: bm25 needs the package bm25s; pip install 'sqlcrystal[local]'") from error
    logging.getLogger("bm25s").setLevel(logging.WARNING)  # it sets itself to DEBUG, and fills stderr
    return bm25s
