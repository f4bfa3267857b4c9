"""What serving keeps: answers, decisions, proposals, hold-out assignments and access tokens."""

from typing import Any

import msgspec
import sqlalchemy as sa
from alembic import op

from sqlcrystal.bank.any_text import AnyText
from sqlcrystal.bank.text import question_key
from sqlcrystal.types import Card

revision = "0003"
down_revision = "0002"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
BATCH = 10_000


def upgrade() -> None:
    """Widen the cards, then make the tables of the serving loop."""
    _widen_cards()
    _make_answers()
    _make_decisions()
    _make_access()


def _text(name: str, **options: object) -> "sa.Column[str]":
    return sa.Column(name, AnyText(), nullable=False, **options)  # type: ignore[arg-type]


def _number(name: str, kind: "sa.types.TypeEngine[Any]") -> "sa.Column[Any]":
    return sa.Column(name, kind, nullable=False, server_default="0")


def _widen_cards() -> None:
    for name in ("admitted_at", "question_key"):
        op.add_column("cards", _text(name, server_default=""))
    # The store itself counts revisions now, once a transaction; a trigger did it for every row.
    if op.get_bind().dialect.name == "sqlite":
        for event in ("insert", "update", "delete"):
            op.execute(f"DROP TRIGGER IF EXISTS revise_after_{event}")
    _fill_cards(op.get_bind())
    op.create_index("cards_by_question", "cards", ["database", "question_key"])
    op.create_index("cards_by_admission", "cards", ["signal", "admitted_by", "admitted_at"])


def _fill_cards(connection: sa.Connection) -> None:
    cards = sa.table(
        "cards",
        sa.column("seq", NUMBER),
        sa.column("document", sa.LargeBinary()),
        sa.column("admitted_at", AnyText()),
        sa.column("question_key", AnyText()),
    )
    fill = (
        sa.update(cards)
        .where(cards.c.seq == sa.bindparam("at_seq"))
        .values(admitted_at=sa.bindparam("admitted"), question_key=sa.bindparam("key"))
    )
    last = 0
    while True:
        rows = connection.execute(
            sa.select(cards.c.seq, cards.c.document).where(cards.c.seq > last).order_by(cards.c.seq).limit(BATCH)
        ).all()
        if not rows:
            return
        known = [(seq, msgspec.json.decode(document, type=Card)) for seq, document in rows]
        connection.execute(
            fill,
            [
                {"at_seq": seq, "admitted": card.admission.at, "key": question_key(card.question.text)}
                for seq, card in known
            ],
        )
        last = rows[-1][0]


def _make_answers() -> None:
    op.create_table(
        "answers",
        sa.Column("seq", NUMBER, primary_key=True, autoincrement=True),
        _text("id", unique=True),
        *(_text(name) for name in ("database", "question_key", "at", "asked_by")),
        sa.Column("memory", sa.Boolean(), nullable=False),
        sa.Column("replayed", sa.Boolean(), nullable=False),
        *(_text(name) for name in ("twin_of", "repair_of", "result_digest")),
        *(_number(name, sa.BigInteger()) for name in ("calls", "prompt_tokens", "completion_tokens")),
        *(_number(name, sa.Double()) for name in ("seconds", "spread", "conflict")),
        _text("error"),
        _text("verdict", server_default=""),
        sa.Column("document", sa.LargeBinary(), nullable=False),
        sa.Column("trace", sa.LargeBinary()),
        sqlite_autoincrement=True,
    )
    op.create_index("answers_by_question", "answers", ["database", "question_key"])
    op.create_index("answers_by_verdict", "answers", ["database", "verdict"])
    op.create_index("answers_by_time", "answers", ["database", "at"])
    op.create_table(
        "answer_cards",
        sa.Column("answer", AnyText(), primary_key=True),
        sa.Column("place", sa.Integer(), primary_key=True),
        _text("card"),
        _number("score", sa.Double()),
    )
    op.create_index("answer_cards_by_card", "answer_cards", ["card"])


def _make_decisions() -> None:
    told = ("database", "at", "by", "signal", "verdict", "answer", "proposal", "card", "replaced", "sql", "note")
    op.create_table(
        "decisions",
        sa.Column("seq", NUMBER, primary_key=True, autoincrement=True),
        _text("id", unique=True),
        *(_text(name) for name in told),
        sqlite_autoincrement=True,
    )
    op.create_index("decisions_by_answer", "decisions", ["answer"])
    op.create_index("decisions_by_card", "decisions", ["card"])
    op.create_index("decisions_by_verifier", "decisions", ["signal", "by", "at"])
    op.create_table(
        "proposals",
        sa.Column("seq", NUMBER, primary_key=True, autoincrement=True),
        _text("id", unique=True),
        *(_text(name) for name in ("database", "answer", "at", "sql", "note")),
        sa.Column("episode", sa.LargeBinary()),
        sqlite_autoincrement=True,
    )
    op.create_index("proposals_by_answer", "proposals", ["answer"])
    op.create_table(
        "assignments",
        *(sa.Column(name, AnyText(), primary_key=True) for name in ("database", "question_key", "day")),
        sa.Column("held_out", sa.Boolean(), nullable=False),
    )


def _make_access() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", AnyText(), primary_key=True),
        _text("digest", unique=True),
        *(_text(name) for name in ("person", "made_at", "made_by", "ends_at", "revoked_at", "revoked_by")),
    )
    op.create_table(
        "token_scopes",
        sa.Column("token", AnyText(), sa.ForeignKey("tokens.id"), primary_key=True),
        *(sa.Column(name, AnyText(), primary_key=True) for name in ("database", "scope")),
    )
