"""A number per database that grows with every change to its cards."""

import sqlalchemy as sa
from alembic import op

from sqlcrystal.bank.any_text import AnyText

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "revisions",
        sa.Column("database", AnyText(), primary_key=True),
        sa.Column("revision", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
    )
