"""Cards and an embedder for tests of the bank and of retrieval."""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sqlcrystal.types import (
    Admission,
    Attempt,
    Call,
    Card,
    CardId,
    CardStatus,
    Completion,
    Episode,
    Message,
    Question,
    Round,
    Rows,
    Sampling,
)


def card(
    number: int | str,
    *,
    text: str | None = None,
    sql: str | None = None,
    database: str = "shop",
    status: CardStatus = CardStatus.ACTIVE,
    writer: str = "W0",
    signal: str = "oracle",
    by: str = "benchmark",
    fingerprint: str = "f0",
    question_id: str | None = None,
) -> Card:
    """A card that differs from every other by its number."""
    asked = f"question number {number}" if text is None else text
    answer = f"SELECT {number}" if sql is None else sql
    return Card(
        id=CardId(f"{database}-{number}"),
        database=database,
        question=Question(id=question_id or f"q{number}", database=database, text=asked),
        sql=answer,
        text=render(asked, answer),
        writer=writer,
        source="T3",
        admission=Admission(signal=signal, by=by, at="2026-01-01T00:00:00+00:00"),
        fingerprint=fingerprint,
        tokens=7,
        status=status,
    )


def render(question_text: str, sql: str) -> str:
    """What a writer would make of a question and its SQL."""
    return f"Question: {question_text}\nSQL: {sql}"


def episode(of: Card) -> Episode:
    """An episode that could have led to this card."""
    call = Call(
        purpose="solve",
        messages=(Message("user", of.question.text),),
        sampling=Sampling(),
        completion=Completion(text="SELECT wrong"),
    )
    attempt = Attempt(question=of.question, calls=(call,), sql="SELECT wrong")
    execution = Rows(("a", "b", "c"), ((1, 1.0, "x'00'"), (None, True, "naïve → 表")), 0.25)
    return Episode(
        attempt=attempt, source="T3", sql=of.sql, rounds=(Round(calls=(call,), sql=of.sql, execution=execution),)
    )


class HashingEmbedder:
    """Words hashed into 64 signed buckets: deterministic, and counts what it was asked to embed."""

    name = "hashing"
    digest = "hashing-64"

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One L2-normalised row per text."""
        self.embedded.extend(texts)
        rows = np.zeros((len(texts), 64), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split() or [""]:
                digest = hashlib.sha256(word.encode()).digest()
                row[digest[0] % 64] += 1.0 if digest[1] % 2 else -1.0
            if not row.any():
                row[0] = 1.0
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows

    def close(self) -> None:
        """Nothing to release."""
