"""Bringing a store to the newest shape: Alembic's steps, and the bank files from before there was Alembic."""

import logging
from pathlib import Path

import sqlalchemy as sa

from sqlcrystal.errors import BankError

HEAD = "0006"
"""The newest step; tests hold it to the files in `versions/`."""

# Bank files of earlier versions named their steps in a table of their own.
OLD_TABLE = "migrations"
OLD_STEPS = {"0001-cards": "0001", "0002-revisions": "0002"}
TAKEN_OVER = "0003-alembic"
"""Written into the old table, so that an earlier sqlcrystal refuses the file instead of misreading it."""


def is_current(connection: sa.Connection) -> bool:
    """Whether nothing is to be done; asked without importing Alembic, which takes longer than opening a store."""
    return _revision(connection) == HEAD


def migrate(connection: sa.Connection) -> None:
    """Bring the store to the newest shape inside the caller's transaction; one from a newer version is refused."""
    revision = _revision(connection)
    if revision is not None and revision not in _known():
        raise BankError(f"the store was made by a newer sqlcrystal (it has {revision}); upgrade to open it")
    from alembic import command
    from alembic.config import Config

    logging.getLogger("alembic").setLevel(logging.WARNING)
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    old = _old_steps(connection) if revision is None else []
    if old:
        command.stamp(config, OLD_STEPS[old[-1]])
    command.upgrade(config, "head")
    if old:
        table = sa.table(OLD_TABLE, sa.column("name"), sa.column("at"))
        connection.execute(table.insert().values(name=TAKEN_OVER, at=""))


def _revision(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    version = connection.scalar(sa.text("SELECT version_num FROM alembic_version"))
    return None if version is None else str(version)


def _known() -> set[str]:
    files = (Path(__file__).parent / "versions").glob("v*.py")
    return {file.name[1:5] for file in files}


def _old_steps(connection: sa.Connection) -> list[str]:
    """The named steps a bank file of an earlier version has, oldest first."""
    if not sa.inspect(connection).has_table(OLD_TABLE):
        return []
    steps = sorted(connection.scalars(sa.text(f"SELECT name FROM {OLD_TABLE}")))
    unknown = [name for name in steps if name not in OLD_STEPS]
    if unknown:
        raise BankError(f"the bank was made by another sqlcrystal (it has {', '.join(unknown)}); upgrade to open it")
    return steps
