"""The store: cards per database, answers and verdicts; durable, inspectable, in SQLite or PostgreSQL."""

from sqlcrystal.bank.access import Grant, Scope
from sqlcrystal.bank.cards import CardStore
from sqlcrystal.bank.exchange import ImportReport, export_jsonl, import_entries, import_jsonl
from sqlcrystal.bank.forgetting import Forgotten
from sqlcrystal.bank.frozen import FrozenBank
from sqlcrystal.bank.places import Place
from sqlcrystal.bank.records import (
    Added,
    AnswerRecord,
    CardEffect,
    CardUse,
    Change,
    Decided,
    Decision,
    Entry,
    Judged,
    Proposal,
    Traffic,
    Verdict,
    Waiting,
)
from sqlcrystal.bank.revalidation import CheckedCard, CheckReport, check_cards
from sqlcrystal.bank.store import Revocation, Store
from sqlcrystal.bank.text import question_key

__all__ = [
    "Added",
    "AnswerRecord",
    "CardEffect",
    "CardStore",
    "CardUse",
    "Change",
    "CheckReport",
    "CheckedCard",
    "Decided",
    "Decision",
    "Entry",
    "Forgotten",
    "FrozenBank",
    "Grant",
    "ImportReport",
    "Judged",
    "Place",
    "Proposal",
    "Revocation",
    "Scope",
    "Store",
    "Traffic",
    "Verdict",
    "Waiting",
    "check_cards",
    "export_jsonl",
    "import_entries",
    "import_jsonl",
    "question_key",
]
