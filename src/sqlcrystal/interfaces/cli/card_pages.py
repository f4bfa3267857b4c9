"""Cards as people read and edit them."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from sqlcrystal.errors import ConfigError
from sqlcrystal.types import Card

if TYPE_CHECKING:
    from sqlcrystal.bank import CheckReport, Entry, Revocation

TEXT_MARK, SQL_MARK = "--- text ---", "--- sql ---"


def with_sql(card: Card, sql: str) -> str:
    """The card's text with another SQL where its own stood."""
    shown = card.sql.strip()
    if not shown or shown not in card.text:
        raise ConfigError("--sql: the card's text does not show its SQL as it stands; give --text too")
    return card.text.replace(shown, sql.strip())


def edited(card: Card) -> tuple[str, str]:
    """The text and SQL as the person at the keyboard leaves them in $VISUAL or $EDITOR."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / f"{card.id}.txt"
        page.write_text(f"{TEXT_MARK}\n{card.text}\n{SQL_MARK}\n{card.sql}\n", encoding="utf-8")
        try:
            subprocess.run([*shlex.split(editor), str(page)], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise ConfigError(f"$EDITOR: {editor!r} failed ({error}); or give --text or --sql") from error
        saved = page.read_text(encoding="utf-8")
    head, mark, sql = saved.partition(f"\n{SQL_MARK}\n")
    if not mark or not head.startswith(TEXT_MARK):
        raise ConfigError(f"edit: keep the lines {TEXT_MARK!r} and {SQL_MARK!r}; nothing was changed")
    return head.removeprefix(TEXT_MARK).strip("\n"), sql.strip("\n")


def one_line(text: str) -> str:
    """Text without line breaks."""
    return " ".join(text.split())


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """Each id by the shortest start, of eight characters or more, that tells it from the others."""
    names = sorted(set(ids))
    shared = [_shared(left, right) for left, right in pairwise(["", *names, ""])]
    return {name: name[: max(8, 1 + max(shared[at : at + 2]))] for at, name in enumerate(names)}


def _shared(left: str, right: str) -> int:
    """How many characters two texts have in common at their start."""
    return next(
        (at for at, (old, new) in enumerate(zip(left, right, strict=False)) if old != new), min(len(left), len(right))
    )


def story(entry: "Entry") -> Iterator[str]:
    """A card with its provenance, as lines for people."""
    card = entry.card
    yield f"{card.id}  {card.status}  database {card.database}, {card.writer} from {card.source}, {card.tokens} tokens"
    admission = card.admission
    detail = f": {admission.detail}" if admission.detail else ""
    yield f"admitted by {admission.signal} ({admission.by}) at {admission.at}{detail}"
    yield f"schema {card.fingerprint}\n"
    yield card.text
    yield f"\nSQL: {card.sql}"
    if entry.episode is not None:
        yield f"\nfirst attempt: {entry.episode.attempt.sql or 'no SQL in the reply'}"
        for number, turn in enumerate(entry.episode.rounds, start=1):
            verdict = "accepted" if turn.accepted else "not accepted"
            yield f"round {number}: {len(turn.probes)} probes, {verdict}: {turn.sql or 'no SQL in the reply'}"
    for change in entry.history:
        move = f" {change.before} → {change.after}" if change.action == "status" else ""
        yield f"{change.at} {change.by}: {change.action}{move}{f' ({change.reason})' if change.reason else ''}"


def revocation_lines(revocation: "Revocation") -> Iterator[str]:
    """What a revocation took out, as lines for people."""
    count = len(revocation.cards)
    yield f"{count} card{'' if count == 1 else 's'} revoked"
    if revocation.leaned:
        yield f"{len(revocation.leaned)} answers had leaned on what was revoked; look at them again:"
    for answer in revocation.leaned:
        yield f"{answer.id}  {answer.at}  {answer.database}: {one_line(answer.question)}"


def check_lines(report: "CheckReport") -> Iterator[str]:
    """What became of the cards, as lines for people."""
    yield f"{report.database}: {report.checked} checked ({report.stale} of an older schema), {report.ran} ran"
    for title, findings in (
        ("quarantined", report.quarantined),
        ("still quarantined", report.still_quarantined),
        ("undecided", report.undecided),
    ):
        for finding in findings:
            yield f"{title}: {finding.card} ({finding.kind}: {finding.message})"
    for card_id in report.released:
        yield f"released: {card_id}"
    if report.releasable:
        yield f"{len(report.releasable)} quarantined run again; --release serves them: {', '.join(report.releasable)}"
