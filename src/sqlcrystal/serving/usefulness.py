"""What makes a verdict useful: answers to one question that differ, and a near card that disagrees."""

import hashlib
from collections import Counter

import msgspec

from sqlcrystal.serving.draft import Draft
from sqlcrystal.serving.workspace import OpenDatabase, Workspace
from sqlcrystal.types import Execution, Rows

NEAR = 0.9
"""A card this near is about the same thing, and should not say something else."""
LOOKED_AT = 10


def result_digest(execution: Execution | None) -> str:
    """The same for the same rows in any order; nothing for SQL that gave none."""
    if not isinstance(execution, Rows):
        return ""
    rows = sorted(msgspec.json.encode(row) for row in execution.rows)
    return hashlib.sha256(b"\n".join([str(len(execution.columns)).encode(), *rows])).hexdigest()[:32]


def spread(workspace: Workspace, draft: Draft, digest: str) -> float:
    """How much this answer, the candidates tried for it and earlier answers to the question disagree, from 0 to 1."""
    tried = draft.episode.rounds if draft.episode is not None else ()
    results = [digest, *(result_digest(turn.execution) for turn in tried)]
    if workspace.store_exists():
        asked = draft.question
        results += workspace.store.answers.digests(asked.text, database=asked.database, limit=LOOKED_AT)
    (_, most), *_ = Counter(results).most_common(1)
    return round(1 - most / len(results), 6)


def conflict(opened: OpenDatabase, draft: Draft, digest: str) -> float:
    """The score of the nearest card whose result is another; a question with other literals is no contradiction."""
    if draft.replayed or draft.sql is None or opened.entry.values == "never":
        return 0.0
    for card, score in ((retrieved.card, retrieved.score) for retrieved in draft.retrieved):
        if score < NEAR:
            break
        from sqlcrystal.serving.parameters import other_values

        if card.sql.strip() == draft.sql.strip() or other_values(card, draft.question.text, opened.database.dialect):
            continue
        if result_digest(opened.database.execute(card.sql)) != digest:
            return score
    return 0.0
