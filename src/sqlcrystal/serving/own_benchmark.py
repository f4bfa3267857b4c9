"""Confirmed answers as a benchmark of one's own: what people vouched for becomes the gold of a study."""

from pathlib import Path

import msgspec

from sqlcrystal.bank import Store, Verdict
from sqlcrystal.errors import BankError, DataError
from sqlcrystal.types import CardStatus

QUESTIONS = "questions.jsonl"


def make_benchmark(store: Store, folder: Path, *, database: str | None = None) -> int:
    """Write one line for each question whose verdict stands and whose card is served; returns how many."""
    lines: dict[tuple[str, str], bytes] = {}
    for decision in store.decisions.all(database=database):
        standing = store.decisions.standing(decision.answer) if decision.answer else None
        if standing is None or standing.id != decision.id or not decision.card:
            continue
        if decision.verdict not in (Verdict.CONFIRMED, Verdict.CORRECTED):
            continue
        try:
            card = store.bank.get(decision.card)
        except BankError:
            continue  # deleted or forgotten since
        if card.status is CardStatus.ACTIVE:
            entry = {"id": card.id, "database": card.database, "question": card.question.text, "sql": card.sql}
            lines[card.database, card.question.text] = msgspec.json.encode(entry)
    if not lines:
        raise DataError(f"{store.where}: no confirmed answers{f' over {database}' if database else ''} to make one of")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / QUESTIONS).write_bytes(b"\n".join(lines.values()) + b"\n")
    return len(lines)
