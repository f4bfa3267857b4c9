"""A team's assertions and external checks of an answer; with all of them for it, it becomes a card at once."""

import shlex
from collections.abc import Iterator

from sqlcrystal.admission.external import ExternalCheck
from sqlcrystal.admission.verifiers import Assertion
from sqlcrystal.bank import AnswerRecord, Verdict
from sqlcrystal.errors import CheckError, UserError
from sqlcrystal.pipeline import admit
from sqlcrystal.protocols import Verifier
from sqlcrystal.serving.banking import bank_card
from sqlcrystal.serving.draft import Vouched
from sqlcrystal.serving.workspace import OpenDatabase, Workspace
from sqlcrystal.types import Episode, Rejected, Written
from sqlcrystal.writing.card import Verbatim


def vouch(workspace: Workspace, opened: OpenDatabase, record: AnswerRecord, episode: Episode | None) -> Vouched:
    """Let every assertion and then the external check look; one that is against it, or gives no verdict, ends it."""
    verifiers = list(_verifiers(opened))
    if episode is None or record.error or not verifiers:
        return Vouched()
    written: Written | None = None
    for verifier in verifiers:
        try:
            verdict, written = admit(episode, verifier=verifier, writer=Verbatim(opened.database.fingerprint))
        except CheckError as error:
            return Vouched(said=f"no verdict: {error}")
        if isinstance(verdict, Rejected):
            if verdict.signal == ExternalCheck.signal:
                note = "" if workspace.keeps_no_values(opened.name) else verdict.reason
                _decide(workspace, record, Verdict.REJECTED, by=_name(verifier), signal=verdict.signal, note=note)
            outcome = Verdict.REJECTED if verdict.signal == ExternalCheck.signal else ""
            return Vouched(said=f"{verdict.signal}: {verdict.reason}", verdict=outcome)
    if written is None:
        return Vouched()
    given = written.card.admission
    try:
        ruling = bank_card(workspace, record, written.card, episode, verdict=Verdict.CONFIRMED)
    except UserError as error:  # an answer without a card is an answer still
        return Vouched(said=f"no card: {error}")
    said = f"{given.signal}: confirmed by {given.by}"
    return Vouched(card=ruling.card, said=said, verdict=Verdict.CONFIRMED)


def _verifiers(opened: OpenDatabase) -> Iterator[Verifier]:
    for number, entry in enumerate(opened.entry.assertion, start=1):
        name = entry.name or f"assertion {number}"
        yield Assertion(opened.database, entry.sql, expect=entry.expect, by=name)
    check = opened.entry.check
    if check.startswith(("http://", "https://")):
        yield ExternalCheck.callback(check)
    elif check:
        yield ExternalCheck.command(shlex.split(check))


def _name(verifier: Verifier) -> str:
    return str(getattr(verifier, "by", "check"))


def _decide(workspace: Workspace, record: AnswerRecord, verdict: Verdict, *, by: str, signal: str, note: str) -> None:
    workspace.store.decisions.decide(record, verdict, by=by, signal=signal, sql=record.sql or "", note=note)
