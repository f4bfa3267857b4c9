"""SQL in words, for those who are asked to judge it; made where it is shown, from what is shown, and never kept."""

from collections.abc import Callable
from typing import TypeAlias

from sqlcrystal.errors import SqlcrystalError
from sqlcrystal.serving.workspace import Workspace
from sqlcrystal.telling.query import Told, tell

Teller: TypeAlias = Callable[[str | None, str], Told]
"""Tells SQL that answers a question."""


def in_words(workspace: Workspace, database: str, sql: str | None, question: str = "") -> Told:
    """Tell SQL over a database in one sentence; nothing where its schema cannot be read now."""
    return teller(workspace, database)(sql, question)


def silent(_sql: str | None, _question: str) -> Told:
    """Tell nothing."""
    return Told()


def teller(workspace: Workspace, database: str) -> Teller:
    """Make what tells SQL over one database, which is looked at once."""
    try:
        opened = workspace.open(database)
        schema = "\n".join(f"{table.definition};" for table in opened.presenter.tables() if table.definition)
        dialect = opened.database.dialect
    except SqlcrystalError:
        return silent
    return lambda sql, question: tell(sql, dialect=dialect, question=question, schema=schema)
