"""The steps that bring a store of any earlier version to the newest shape, oldest first; a step is never changed.

Alembic writes the statements for both engines. It is imported by a store that has steps to take: that takes longer than
opening one that has none.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import sqlalchemy as sa

from sqlcrystal.bank.records import question_key
from sqlcrystal.bank.tables import AnyText
from sqlcrystal.errors import BankError
from sqlcrystal.types import Card

if TYPE_CHECKING:
    from alembic.operations import Operations

Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_VERSION = sa.table("alembic_version", sa.column("version_num"))
_BATCH = 10_000

# Bank files of the first versions named their steps in a table of their own.
FIRST_TABLE = "migrations"
FIRST_STEPS = {"0001-cards": "0001", "0002-revisions": "0002"}
TAKEN_OVER = "0003-alembic"
"""Written into that table, so that an earlier sqlcrystal refuses the file instead of misreading it."""


def is_current(connection: sa.Connection) -> bool:
    """Tell whether the store has the newest shape."""
    return _version(connection) == HEAD


def migrate(connection: sa.Connection) -> None:
    """Bring the store to the newest shape inside the caller's transaction; one from a newer version is refused."""
    version = _version(connection)
    if version is not None and version not in STEPS:
        raise BankError(f"the store was made by a newer sqlcrystal (it has {version}); upgrade to open it")
    from alembic.migration import MigrationContext
    from alembic.operations import Operations

    first_steps = _first_steps(connection) if version is None else []
    done = FIRST_STEPS[first_steps[-1]] if first_steps else version or ""
    operations = Operations(MigrationContext.configure(connection))
    for name, step in STEPS.items():
        if name > done:
            step(operations)
    if version is None:
        operations.create_table(
            "alembic_version",
            sa.Column("version_num", sa.String(32), nullable=False),
            sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
        )
        connection.execute(_VERSION.insert().values(version_num=HEAD))
    else:
        connection.execute(_VERSION.update().values(version_num=HEAD))
    if first_steps:
        table = sa.table(FIRST_TABLE, sa.column("name"), sa.column("at"))
        connection.execute(table.insert().values(name=TAKEN_OVER, at=""))


def _version(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    version = connection.scalar(sa.select(_VERSION.c.version_num))
    return None if version is None else str(version)


def _first_steps(connection: sa.Connection) -> list[str]:
    """List the steps that a bank file of the first versions has taken, oldest first."""
    if not sa.inspect(connection).has_table(FIRST_TABLE):
        return []
    steps = sorted(connection.scalars(sa.text(f"SELECT name FROM {FIRST_TABLE}")))
    unknown = [name for name in steps if name not in FIRST_STEPS]
    if unknown:
        raise BankError(f"the bank was made by another sqlcrystal (it has {', '.join(unknown)}); upgrade to open it")
    return steps


# ── columns ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _text(name: str, **options: object) -> "sa.Column[str]":
    return sa.Column(name, AnyText(), nullable=False, **options)  # type: ignore[arg-type]


def _number(name: str, kind: "sa.types.TypeEngine[Any]") -> "sa.Column[Any]":
    return sa.Column(name, kind, nullable=False, server_default="0")


# ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _make_cards(op: "Operations") -> None:
    """Make the tables of cards, the episodes they came from, and their changes."""
    op.create_table(
        "episodes",
        sa.Column("digest", AnyText(), primary_key=True),
        sa.Column("document", sa.LargeBinary(), nullable=False),
    )
    texts = ("database", "status", "writer", "source", "signal", "admitted_by", "valid_for")
    op.create_table(
        "cards",
        sa.Column("seq", Number, primary_key=True, autoincrement=True),
        sa.Column("id", AnyText(), nullable=False, unique=True),
        sa.Column("content", AnyText(), nullable=False, unique=True),
        *(sa.Column(name, AnyText(), nullable=False) for name in texts),
        sa.Column("episode", AnyText(), sa.ForeignKey("episodes.digest")),
        sa.Column("document", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("status IN ('active', 'disabled', 'quarantined')", name="cards_status"),
        sqlite_autoincrement=True,
    )
    op.create_index("cards_by_database", "cards", ["database", "status"])
    op.create_index("cards_by_episode", "cards", ["episode"])
    op.create_table(
        "changes",
        sa.Column("seq", Number, primary_key=True, autoincrement=True),
        *(
            sa.Column(name, AnyText(), nullable=False)
            for name in ("card", "at", "by", "action", "before", "after", "reason")
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("changes_by_card", "changes", ["card"])


def _make_revisions(op: "Operations") -> None:
    """Make a number per database that grows with every change to its cards."""
    op.create_table(
        "revisions",
        sa.Column("database", AnyText(), primary_key=True),
        sa.Column("revision", Number, nullable=False),
    )


def _make_serving(op: "Operations") -> None:
    """Make the tables of serving: answers, decisions, proposals, hold-out assignments and access tokens."""
    _widen_cards(op)
    _make_answers(op)
    _make_decisions(op)
    _make_access(op)


def _widen_cards(op: "Operations") -> None:
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
        sa.column("seq", Number),
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
            sa.select(cards.c.seq, cards.c.document).where(cards.c.seq > last).order_by(cards.c.seq).limit(_BATCH)
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


def _make_answers(op: "Operations") -> None:
    op.create_table(
        "answers",
        sa.Column("seq", Number, primary_key=True, autoincrement=True),
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


def _make_decisions(op: "Operations") -> None:
    told = ("database", "at", "by", "signal", "verdict", "answer", "proposal", "card", "replaced", "sql", "note")
    op.create_table(
        "decisions",
        sa.Column("seq", Number, primary_key=True, autoincrement=True),
        _text("id", unique=True),
        *(_text(name) for name in told),
        sqlite_autoincrement=True,
    )
    op.create_index("decisions_by_answer", "decisions", ["answer"])
    op.create_index("decisions_by_card", "decisions", ["card"])
    op.create_index("decisions_by_verifier", "decisions", ["signal", "by", "at"])
    op.create_table(
        "proposals",
        sa.Column("seq", Number, primary_key=True, autoincrement=True),
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


def _make_access(op: "Operations") -> None:
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


def _make_places(op: "Operations") -> None:
    """Make the table of databases that no settings name."""
    op.create_table(
        "places",
        sa.Column("database", AnyText(), primary_key=True),
        *(sa.Column(name, AnyText(), nullable=False) for name in ("url", "model", "at")),
    )


def _add_shares(op: "Operations") -> None:
    """Add the chance by which an answer was given without memory, and a quick way from an answer to its twin."""
    op.add_column("answers", sa.Column("share", sa.Double(), nullable=False, server_default="0"))
    op.create_index("answers_by_twin", "answers", ["twin_of"])


def _drop_assignments(op: "Operations") -> None:
    """Drop the hold-out assignments: a hash says which questions are held out, the same for every process."""
    op.drop_table("assignments")


def _add_causes(op: "Operations") -> None:
    """Add the id that caused a change, which had to be read from its reason; one form of time; a plainer name."""
    op.add_column("changes", _text("cause", server_default=""))
    card, answer, rejected = "replaced by card ", "answer ", " was rejected"
    changes = sa.table("changes", sa.column("reason", AnyText()), sa.column("cause", AnyText()))
    after_card = sa.func.substr(changes.c.reason, len(card) + 1)
    length = sa.func.length(changes.c.reason) - len(answer) - len(rejected)
    for text, cause in (
        (f"{card}%", after_card),
        (f"{answer}%{rejected}", sa.func.substr(changes.c.reason, len(answer) + 1, length)),
    ):
        op.execute(changes.update().where(changes.c.reason.like(text)).values(cause=cause))
    # Admissions were written with Z and edits with +00:00, so that `since` could leave a card out within its second.
    cards = sa.table("cards", sa.column("admitted_at", AnyText()))
    in_utc = sa.func.replace(cards.c.admitted_at, "Z", "+00:00")
    op.execute(cards.update().where(cards.c.admitted_at.like("____-__-__T__:__:__Z")).values(admitted_at=in_utc))
    op.rename_table("places", "locations")


def _add_doubt(op: "Operations") -> None:
    """Add the doubt that an answer was given with, so that the queue can begin with the doubtful ones."""
    op.add_column("answers", sa.Column("doubt", sa.Double(), nullable=False, server_default="0"))


def _add_audits(op: "Operations") -> None:
    """Add what chance chose to be judged, and whether an answer showed a sign of trouble."""
    op.add_column("answers", sa.Column("audit", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("answers", sa.Column("trouble", sa.Boolean(), nullable=True))
    chosen: dict[str, Any] = {"sqlite_where": sa.text("audit = 1"), "postgresql_where": sa.text("audit")}
    op.create_index("answers_by_audit", "answers", ["database"], **chosen)


def _make_experiments(op: "Operations") -> None:
    """Make the table of how each database's questions are divided, where a person chose it and not the settings."""
    op.create_table(
        "experiments",
        sa.Column("database", AnyText(), primary_key=True),
        sa.Column("hold_out", sa.Double(), nullable=False, server_default="0"),
        sa.Column("both_arms", sa.Boolean(), nullable=False),
        *(sa.Column(name, AnyText(), nullable=False) for name in ("by", "at")),
    )


def _make_learned(op: "Operations") -> None:
    """Add the origin of an answer's question, and a table of what came of each query of a log."""
    op.add_column("answers", _text("origin", server_default=""))
    op.create_table(
        "learned",
        *(sa.Column(name, AnyText(), primary_key=True) for name in ("database", "shape")),
        *(_text(name) for name in ("at", "outcome", "answer")),
    )


def _add_turns(op: "Operations") -> None:
    """Add the answer that a question follows, and the other question that a note on an answer asks."""
    op.add_column("answers", _text("follows", server_default=""))
    op.create_index("answers_by_turn", "answers", ["follows"])
    op.add_column("proposals", _text("question", server_default=""))


def _make_confidences(op: "Operations") -> None:
    """Make the table of the models of confidence that a team's own verdicts have refitted."""
    op.create_table(
        "confidences",
        sa.Column("database", AnyText(), primary_key=True),
        _number("verdicts", sa.BigInteger()),
        _text("at"),
        sa.Column("document", sa.LargeBinary(), nullable=False),
    )


def _make_definitions(op: "Operations") -> None:
    """Add the kind of a card, and the table of definitions that wait for a person."""
    op.add_column("cards", _text("kind", server_default="question"))
    op.create_table(
        "proposed_definitions",
        sa.Column("seq", Number, primary_key=True, autoincrement=True),
        _text("id", unique=True),
        *(_text(name) for name in ("database", "at")),
        *(_text(name, server_default="") for name in ("verdict", "by")),
        sa.Column("document", sa.LargeBinary(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("proposed_definitions_by_database", "proposed_definitions", ["database", "verdict"])


STEPS: "dict[str, Callable[[Operations], None]]" = {
    "0001": _make_cards,
    "0002": _make_revisions,
    "0003": _make_serving,
    "0004": _make_places,
    "0005": _add_shares,
    "0006": _drop_assignments,
    "0007": _add_causes,
    "0008": _add_doubt,
    "0009": _add_audits,
    "0010": _make_experiments,
    "0011": _make_learned,
    "0012": _add_turns,
    "0014": _make_confidences,
    "0015": _make_definitions,
}
HEAD = max(STEPS)
"""The newest shape."""
