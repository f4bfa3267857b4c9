"""What a team's assertions and external checks say of an answer; with all of them for it, it becomes a card at once."""

import shlex
from collections.abc import Iterator

from msgspec import Struct

from sqlcrystal.admission.external import ExternalCheck
from sqlcrystal.admission.verifiers import Assertion
from sqlcrystal.bank import AnswerRecord, Verdict
from sqlcrystal.errors import CheckError, UserError
from sqlcrystal.pipeline import admit
from sqlcrystal.protocols import Verifier
from sqlcrystal.serving.banking import bank_card
from sqlcrystal.serving.desk import Desk, Site
from sqlcrystal.types import Episode, Rejected, Written
from sqlcrystal.writing.card import Verbatim


class Vouched(Struct, frozen=True):
    """The card an answer became without a person, and what was said."""

    card: str = ""
    said: str = ""


def vouch(desk: Desk, site: Site, record: AnswerRecord, episode: Episode | None) -> Vouched:
    """Let every assertion and then the external check look; one that is against it, or gives no verdict, ends it."""
    verifiers = list(_verifiers(site))
    if episode is None or record.error or not verifiers:
        return Vouched()
    written: Written | None = None
    for verifier in verifiers:
        try:
            verdict, written = admit(episode, verifier=verifier, writer=Verbatim(site.database.fingerprint))
        except CheckError as error:
            return Vouched(said=f"no verdict: {error}")
        if isinstance(verdict, Rejected):
            if verdict.signal == ExternalCheck.signal:
                note = "" if desk.keeps_no_values(site.name) else verdict.reason
                _decide(desk, record, Verdict.REJECTED, by=_name(verifier), signal=verdict.signal, note=note)
            return Vouched(said=f"{verdict.signal}: {verdict.reason}")
    if written is None:
        return Vouched()
    given = written.card.admission
    try:
        ruling = bank_card(desk, record, written.card, episode, verdict=Verdict.CONFIRMED)
    except UserError as error:  # an answer without a card is an answer still
        return Vouched(said=f"no card: {error}")
    return Vouched(card=ruling.card, said=f"{given.signal}: confirmed by {given.by}")


def _verifiers(site: Site) -> Iterator[Verifier]:
    for number, entry in enumerate(site.entry.assertion, start=1):
        name = entry.name or f"assertion {number}"
        yield Assertion(site.database, entry.sql, expect=entry.expect, by=name)
    check = site.entry.check
    if check.startswith(("http://", "https://")):
        yield ExternalCheck.callback(check)
    elif check:
        yield ExternalCheck.command(shlex.split(check))


def _name(verifier: Verifier) -> str:
    return str(getattr(verifier, "by", "check"))


def _decide(desk: Desk, record: AnswerRecord, verdict: Verdict, *, by: str, signal: str, note: str) -> None:
    desk.store.decisions.decide(record, verdict, by=by, signal=signal, sql=record.sql or "", note=note)
