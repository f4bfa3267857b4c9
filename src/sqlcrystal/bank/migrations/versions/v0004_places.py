"""Where a database lies that no settings name."""

import sqlalchemy as sa
from alembic import op

from sqlcrystal.bank.any_text import AnyText

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "places",
        sa.Column("database", AnyText(), primary_key=True),
        *(sa.Column(name, AnyText(), nullable=False) for name in ("url", "model", "at")),
    )
