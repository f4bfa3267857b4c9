"""The shape of a bank file, as named migrations that are only ever appended to."""

import sqlite3
from datetime import UTC, datetime

from sqlcrystal.errors import BankError

APPLICATION_ID = 0x53514C43  # "SQLC": tells a bank from any other SQLite file before anything is written to it

MIGRATIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "0001-cards",
        (
            """CREATE TABLE episodes (
                digest TEXT PRIMARY KEY,
                document BLOB NOT NULL
            )""",
            """CREATE TABLE cards (
                seq INTEGER PRIMARY KEY AUTOINCREMENT,
                id TEXT NOT NULL UNIQUE,
                content TEXT NOT NULL UNIQUE,
                database TEXT NOT NULL,
                status TEXT NOT NULL CHECK (status IN ('active', 'disabled', 'quarantined')),
                writer TEXT NOT NULL,
                source TEXT NOT NULL,
                signal TEXT NOT NULL,
                admitted_by TEXT NOT NULL,
                valid_for TEXT NOT NULL,
                episode TEXT REFERENCES episodes (digest),
                document BLOB NOT NULL
            )""",
            "CREATE INDEX cards_by_database ON cards (database, status)",
            "CREATE INDEX cards_by_episode ON cards (episode)",
            """CREATE TABLE changes (
                seq INTEGER PRIMARY KEY AUTOINCREMENT,
                card TEXT NOT NULL,
                at TEXT NOT NULL,
                by TEXT NOT NULL,
                action TEXT NOT NULL,
                before TEXT NOT NULL,
                after TEXT NOT NULL,
                reason TEXT NOT NULL
            )""",
            "CREATE INDEX changes_by_card ON changes (card)",
        ),
    ),
    (
        # A revision per database lets every process notice another's writes without reading the cards again;
        # triggers keep it right whoever writes.
        "0002-revisions",
        (
            "CREATE TABLE revisions (database TEXT PRIMARY KEY, revision INTEGER NOT NULL) WITHOUT ROWID",
            *(
                f"""CREATE TRIGGER revise_after_{event} AFTER {event} {columns} ON cards BEGIN
                    INSERT INTO revisions VALUES ({row}.database, 1)
                    ON CONFLICT (database) DO UPDATE SET revision = revision + 1;
                END"""
                for event, columns, row in (
                    ("insert", "", "NEW"),
                    ("update", "OF status, document", "NEW"),
                    ("delete", "", "OLD"),
                )
            ),
        ),
    ),
)


def belongs_to_a_bank(connection: sqlite3.Connection) -> bool:
    """Whether the open file is a bank or empty; says nothing about what its cards hold."""
    if connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID:
        return True
    return connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the file to the newest shape in one transaction; a bank from a newer version is refused."""
    if _applied(connection) == [name for name, _ in MIGRATIONS]:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, at TEXT NOT NULL)")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        applied = _applied(connection)
        unknown = sorted(set(applied) - {name for name, _ in MIGRATIONS})
        if unknown:
            raise BankError(
                f"the bank was made by a newer sqlcrystal (it has {', '.join(unknown)}); upgrade to open it"
            )
        for name, statements in MIGRATIONS:
            if name not in applied:
                for statement in statements:
                    connection.execute(statement)
                connection.execute("INSERT INTO migrations VALUES (?, ?)", (name, datetime.now(UTC).isoformat()))
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _applied(connection: sqlite3.Connection) -> list[str]:
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'migrations'").fetchone():
        return []
    return [name for (name,) in connection.execute("SELECT name FROM migrations ORDER BY name")]
