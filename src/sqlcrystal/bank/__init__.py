"""The card store: durable and per database, inspectable, re-validated against the live database."""

from sqlcrystal.bank.connection import BANK_VARIABLE, default_bank_path
from sqlcrystal.bank.exchange import ImportReport, export_jsonl, import_jsonl
from sqlcrystal.bank.frozen import FrozenBank
from sqlcrystal.bank.records import Added, Change, Entry
from sqlcrystal.bank.revalidation import CheckReport, Finding, check_cards
from sqlcrystal.bank.store import CardStore

__all__ = [
    "BANK_VARIABLE",
    "Added",
    "CardStore",
    "Change",
    "CheckReport",
    "Entry",
    "Finding",
    "FrozenBank",
    "ImportReport",
    "check_cards",
    "default_bank_path",
    "export_jsonl",
    "import_jsonl",
]
