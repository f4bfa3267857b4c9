"""The store: cards per database, answers and verdicts; durable, inspectable, in SQLite or PostgreSQL.

Names are loaded when they are first asked for: where there is no store yet, none is opened before the answer.
"""

from typing import TYPE_CHECKING

from sqlcrystal.first_use import on_first_use

if TYPE_CHECKING:
    from sqlcrystal.bank.cards import CardStore
    from sqlcrystal.bank.engines import await_server
    from sqlcrystal.bank.exchange import ImportReport, export_jsonl, import_entries, import_jsonl, read_entries
    from sqlcrystal.bank.forgetting import Forgotten
    from sqlcrystal.bank.frozen import FrozenBank
    from sqlcrystal.bank.records import (
        Added,
        AnswerRecord,
        CardEffect,
        CardUse,
        Change,
        DatabaseLocation,
        Decided,
        Decision,
        Entry,
        Experiment,
        Grant,
        Judged,
        Proposal,
        ProposedDefinition,
        Scope,
        TermUse,
        Traffic,
        Verdict,
        Waiting,
        question_key,
    )
    from sqlcrystal.bank.revalidation import CheckedCard, CheckReport, check_cards
    from sqlcrystal.bank.store import Revocation, Store

__all__ = [
    "Added",
    "AnswerRecord",
    "CardEffect",
    "CardStore",
    "CardUse",
    "Change",
    "CheckReport",
    "CheckedCard",
    "DatabaseLocation",
    "Decided",
    "Decision",
    "Entry",
    "Experiment",
    "Forgotten",
    "FrozenBank",
    "Grant",
    "ImportReport",
    "Judged",
    "Proposal",
    "ProposedDefinition",
    "Revocation",
    "Scope",
    "Store",
    "TermUse",
    "Traffic",
    "Verdict",
    "Waiting",
    "await_server",
    "check_cards",
    "export_jsonl",
    "import_entries",
    "import_jsonl",
    "question_key",
    "read_entries",
]

__getattr__ = on_first_use(
    __name__,
    {
        "cards": ("CardStore",),
        "engines": ("await_server",),
        "exchange": ("ImportReport", "export_jsonl", "import_entries", "import_jsonl", "read_entries"),
        "forgetting": ("Forgotten",),
        "frozen": ("FrozenBank",),
        "records": (
            "Added",
            "AnswerRecord",
            "CardEffect",
            "CardUse",
            "Change",
            "DatabaseLocation",
            "Decided",
            "Decision",
            "Entry",
            "Experiment",
            "Grant",
            "Judged",
            "Proposal",
            "ProposedDefinition",
            "Scope",
            "TermUse",
            "Traffic",
            "Verdict",
            "Waiting",
            "question_key",
        ),
        "revalidation": ("CheckedCard", "CheckReport", "check_cards"),
        "store": ("Revocation", "Store"),
    },
)
