"""Cards, the episodes they came from, and what was done to them."""

import sqlalchemy as sa
from alembic import op

from sqlcrystal.bank.any_text import AnyText

revision = "0001"
down_revision = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "episodes",
        sa.Column("digest", AnyText(), primary_key=True),
        sa.Column("document", sa.LargeBinary(), nullable=False),
    )
    texts = ("database", "status", "writer", "source", "signal", "admitted_by", "valid_for")
    op.create_table(
        "cards",
        sa.Column("seq", NUMBER, primary_key=True, autoincrement=True),
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
        sa.Column("seq", NUMBER, primary_key=True, autoincrement=True),
        *(
            sa.Column(name, AnyText(), nullable=False)
            for name in ("card", "at", "by", "action", "before", "after", "reason")
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("changes_by_card", "changes", ["card"])
