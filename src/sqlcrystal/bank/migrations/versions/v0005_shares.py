"""By which chance an answer was given without memory, and a quick way from an answer to its twin."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Widen the answers."""
    op.add_column("answers", sa.Column("share", sa.Double(), nullable=False, server_default="0"))
    op.create_index("answers_by_twin", "answers", ["twin_of"])
