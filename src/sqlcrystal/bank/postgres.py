"""A store in PostgreSQL, for several processes or machines; its tables lie in a schema of their own.

Not guaranteed: that a forgotten datum leaves the server's write-ahead log and backups, which are the server's to keep.
"""

from importlib.util import find_spec

import sqlalchemy as sa

from sqlcrystal.errors import BankError, ConfigError

SCHEMA = "sqlcrystal"
WRITERS = 0x53514C43  # "SQLC": the advisory lock that lets one writer in at a time
CONNECT_SECONDS = 10
EF_SEARCH = 100
"""How many candidates pgvector keeps while it searches: more find more, and take longer."""

_MEANING = {
    "28": "the user name or password is wrong",
    "3D": "there is no database of that name on the server",
    "42501": "this account may not write here; grant it CREATE on the database, or use another",
    "53": "the server has no room or connections left",
    "55P03": "another process has kept the bank locked; try again when it is done",
    "57": "the server stopped or cancelled the statement; try again",
    "25006": "the bank is read-only",
}


class PostgresEngine:
    """Commits wait for the disk whatever the server's default is; writers that look before they write take turns."""

    readers = 8  # a look takes less than a millisecond, and a server has few connections to give

    def __init__(self, url: str, *, create: bool, busy_seconds: float) -> None:
        """Connect, and make the schema if it is to be made."""
        if find_spec("psycopg") is None:
            raise ConfigError("store: postgresql:// needs psycopg; pip install 'sqlcrystal[postgres]'")
        try:
            parsed = sa.make_url(url).set(drivername="postgresql+psycopg")
        except (sa.exc.ArgumentError, ValueError):
            raise ConfigError("store: not a URL such as postgresql://USER@HOST/DATABASE") from None
        self.where = parsed.set(drivername="postgresql").render_as_string(hide_password=True)
        self._busy_milliseconds = round(busy_seconds * 1000)
        self.sqlalchemy = sa.create_engine(
            parsed,
            pool_pre_ping=True,
            pool_size=8,
            max_overflow=24,
            pool_timeout=busy_seconds,
            connect_args={"connect_timeout": CONNECT_SECONDS},
        )
        sa.event.listen(self.sqlalchemy, "connect", self._set_up)
        try:
            self._prepare(create=create)
        except BaseException:
            self.sqlalchemy.dispose()
            raise

    def take_lock(self, connection: sa.Connection) -> None:
        """An advisory lock of this transaction."""
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": WRITERS})

    def reader(self) -> sa.Connection:
        """Without a transaction: each statement is one trip to the server."""
        return self.sqlalchemy.connect().execution_options(isolation_level="AUTOCOMMIT")

    def snapshot(self) -> sa.Connection:
        """Repeatable read, streamed, so that an export does not fill this process."""
        return self.sqlalchemy.connect().execution_options(isolation_level="REPEATABLE READ", stream_results=True)

    def meaning(self, error: BaseException | None) -> str:
        """By the SQLSTATE, else the server's first line."""
        state = getattr(error, "sqlstate", None) or ""
        lines = str(error).strip().splitlines() or [type(error).__name__]
        known = next((text for code, text in _MEANING.items() if state.startswith(code)), "")
        return known or (lines[0] if state else f"cannot connect: {lines[-1].strip()}")

    def erase(self) -> None:
        """Vacuum, which frees the deleted rows for reuse; see what this module does not guarantee."""
        with self.sqlalchemy.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(sa.text("VACUUM"))

    def _set_up(self, connection: object, _: object) -> None:
        connection.autocommit = True  # type: ignore[attr-defined]
        with connection.cursor() as cursor:  # type: ignore[attr-defined]
            cursor.execute(
                f"SET search_path = {SCHEMA}, public; SET synchronous_commit = on;"
                f"SET lock_timeout = {self._busy_milliseconds};"
                # For pgvector, where it is used. Strict order goes on until enough cards pass a search's filter,
                # however many of the nearest were disabled.
                f"SET hnsw.ef_search = {EF_SEARCH}; SET hnsw.iterative_scan = strict_order"
            )
        connection.autocommit = False  # type: ignore[attr-defined]

    def _prepare(self, *, create: bool) -> None:
        try:
            with self.sqlalchemy.begin() as connection:
                if connection.scalar(sa.text("SHOW server_encoding")) != "UTF8":
                    raise BankError(f"{self.where}: the database must be encoded in UTF8")
                self.take_lock(connection)
                there = connection.scalar(sa.text("SELECT 1 FROM pg_namespace WHERE nspname = :name"), {"name": SCHEMA})
                if there:
                    return
                if not create:
                    raise BankError(f"{self.where}: there is no bank here yet")
                connection.execute(sa.text(f"CREATE SCHEMA {SCHEMA}"))
        except sa.exc.DBAPIError as error:
            raise BankError(f"{self.where}: {self.meaning(error.orig)}") from error
