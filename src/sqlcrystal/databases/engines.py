"""The record of each engine: all that differs between dialects, told once.

A further engine is a record here, a module that opens its databases, and its word list in `word_lists/`. Nothing in
this module loads a driver or the parser.
"""

import tomllib
from collections.abc import Mapping
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from msgspec import Struct

from sqlcrystal.errors import ConfigError

if TYPE_CHECKING:
    from sqlcrystal.protocols import Database

_STANDARD = r"'(?:[^']|'')*'"
_DOUBLE = r'"(?:[^"]|"")*"'
_BACKTICK = r"`(?:[^`]|``)*`"
_ESCAPED = r"'(?:[^'\\]|\\.|'')*'"
_ESCAPED_DOUBLE = r'"(?:[^"\\]|\\.|"")*"'
_UNICODE = r"'(?:[^'\\]|\\[0-9A-Fa-f]{4}|\\\+[0-9A-Fa-f]{6}|\\\\)*'"
_DOLLAR = r"(?P<tag>\$(?:[A-Za-z_]\w*)?\$).*(?P=tag)"
# A dash comment ends at the line's end; engines do not agree whether a lone carriage return is one.
_LINE = r"--[^\r\n]*(?=\r?\n|\Z)"
_SPACED_LINE = r"--(?=[ \t]|\r?\n|\Z)[^\r\n]*(?=\r?\n|\Z)"
_HASH = r"#[^\r\n]*(?=\r?\n|\Z)"

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_TABLE = rf"(?P<table>{_NAME}(?:\.{_NAME})?)"
_QUERY = r"(?P<query>(?:SELECT|WITH|VALUES|FROM|\().*)"
_OPTION = r"(?:COSTS|VERBOSE|SETTINGS|SUMMARY|GENERIC_PLAN|FORMAT)(?:\s+(?:ON|OFF|TRUE|FALSE|TEXT|JSON|YAML|XML))?"


class Opening(NamedTuple):
    """The caller's wishes for the opening of a database."""

    url: str
    path: Path
    name: str | None
    inspect: bool
    functions: tuple[str, ...]
    allow_privileged: bool
    terse: bool


class Opener(Protocol):
    """Opens a database of one engine."""

    def __call__(self, opening: Opening) -> "Database":
        """Open it read-only."""
        ...


class EngineRecord(Struct, frozen=True, kw_only=True, dict=True):
    """One engine: where its databases lie, how its SQL is read, and where it leaves the common rules."""

    name: str
    spellings: Mapping[str, str]
    """The scheme of its URLs, and every other name of the dialect, with the name that people read."""
    tags: tuple[str, ...] = ()
    """Further marks that models put on its SQL."""
    opener: str
    """`module:function`; the module loads the driver."""
    modules: tuple[str, ...] = ()
    """The packages that the extra of its name installs."""
    suffixes: tuple[str, ...] = ()
    """How its files end; none for a server."""
    content_is_its_file: bool = False
    """Whether the digest of the file stands for what the database holds."""
    file_begins: bytes = b""
    grammar: str
    """sqlglot's name of the dialect."""

    quoted: str
    """How a quoted piece is spelled; the group `prefix` changes how its inside is read."""
    line_remarks: tuple[str, ...] = (_LINE,)
    keeps_remarks: bool = False
    """Whether the engine gets remarks too: there they are part of the label of a column without an alias."""
    digits_begin_names: bool = False
    executed_remarks: tuple[str, ...] = ()
    """How remarks begin that the engine runs."""
    strings_go_on: bool = False
    """Whether a string goes on in the next one, with its escapes."""
    signs_stand_close: bool = False
    """Whether a sign may stand right before a minus or plus, and be read as itself."""
    variables: bool = False
    """Whether `@name` is a variable of the session, which a statement may set."""
    cuts_hex: bool = False
    """Whether the tokenizer takes `x'41'` for a name and a string."""
    sql_json_clauses: bool = False
    """Whether it knows SQL/JSON's clauses on wrappers, quotes, and absent values, which the parser does not."""
    factorial: bool = False
    absolute_value: bool = False
    """Whether `5!` and `@ 5` are operators, which the parser does not know."""
    values_is_a_query: bool = False
    odbc_literals: bool = False
    system_time: bool = False
    """Whether it reads `VALUES (1)` alone, `{d '2024-01-01'}` and `FOR SYSTEM_TIME`, which the parser does not."""
    pivots: bool = False
    """Whether PIVOT is a query of its own."""

    inspections: tuple[str, ...] = ()
    """The questions that people ask about a query or a table: EXPLAIN without ANALYZE, DESCRIBE, SHOW, SUMMARIZE."""
    describes_in_from: bool = False
    """Whether DESCRIBE and SUMMARIZE may stand as a table."""
    attributes_call: bool = False
    """Whether a name behind a dot may call a function: (1).pg_sleep."""
    tables_name_files: bool = False
    """Whether the name of a table may be a path, a pattern or a URL."""
    views_of_functions: bool = False
    """Whether the results of functions that none may call are tables, too."""
    quoted_names_may_be_text: bool = False
    """Whether a name in double quotes that names nothing is a text."""
    one_schema: bool = False
    """Whether a database is a schema of a server, beside those of others."""
    fragile: str = ""
    """`module:function` that finds calls which end the server."""

    @cached_property
    def words(self) -> Mapping[str, frozenset[str]]:
        """Its word list, by what is said of the words."""
        return words_of(self.name)

    def list(self, key: str) -> frozenset[str]:
        """One of its word lists; empty where the engine has none."""
        return self.words.get(key, frozenset())

    @property
    def tells_purity(self) -> bool:
        """Tell whether the engine says of each function whether it is pure."""
        return "pure" in self.words

    @property
    def is_a_file(self) -> bool:
        """Tell whether its databases are files."""
        return bool(self.suffixes)

    def open(self, opening: Opening) -> "Database":
        """Open a database; its driver is imported now."""
        opener: Opener = loaded(self.opener)
        return opener(opening)


SQLITE = EngineRecord(
    name="sqlite",
    spellings={"sqlite": "SQLite"},
    tags=("sqlite3",),
    opener="sqlcrystal.databases.sqlite:open_sqlite",
    suffixes=(".sqlite", ".db", ".sqlite3"),
    content_is_its_file=True,
    file_begins=b"SQLite format 3\0",
    grammar="sqlite",
    quoted=rf"{_STANDARD}|{_DOUBLE}|{_BACKTICK}|\[[^\]]*\]|(?P<prefix>[xX])'[0-9A-Fa-f]*'",
    keeps_remarks=True,
    signs_stand_close=True,
    inspections=(rf"(?P<prefix>EXPLAIN(?:\s+QUERY\s+PLAN)?)\s+{_QUERY}",),
    quoted_names_may_be_text=True,
)
POSTGRES = EngineRecord(
    name="postgres",
    spellings={"postgres": "PostgreSQL", "postgresql": "PostgreSQL"},
    opener="sqlcrystal.databases.postgres:open_postgres",
    modules=("sqlalchemy", "psycopg"),
    grammar="postgres",
    quoted=rf"{_STANDARD}|{_DOUBLE}|(?P<prefix>[eE]{_ESCAPED}|[uU]&{_UNICODE})|[nN]{_STANDARD}|[xX]'[0-9A-Fa-f]*'"
    rf"|[bB]'[01]*'|{_DOLLAR}",
    strings_go_on=True,
    sql_json_clauses=True,
    absolute_value=True,
    inspections=(
        rf"(?P<prefix>EXPLAIN(?:\s+VERBOSE|\s*\(\s*{_OPTION}(?:\s*,\s*{_OPTION})*\s*\))?)\s*(?<![A-Za-z]){_QUERY}",
        rf"(?P<prefix>SHOW\s+(?:TIME\s+ZONE|{_NAME}))",
    ),
    attributes_call=True,
)
MYSQL = EngineRecord(
    name="mysql",
    spellings={"mysql": "MySQL", "mariadb": "MariaDB"},
    opener="sqlcrystal.databases.mysql:open_mysql",
    modules=("sqlalchemy", "pymysql"),
    grammar="mysql",
    quoted=rf"{_ESCAPED}|{_ESCAPED_DOUBLE}|{_BACKTICK}|(?P<prefix>[nN]){_ESCAPED}|[xX]'[0-9A-Fa-f]*'|[bB]'[01]*'",
    line_remarks=(_SPACED_LINE, _HASH),
    keeps_remarks=True,
    digits_begin_names=True,
    executed_remarks=("/*!", "/*M!"),
    signs_stand_close=True,
    variables=True,
    sql_json_clauses=True,
    values_is_a_query=True,
    odbc_literals=True,
    system_time=True,
    inspections=(
        rf"(?P<prefix>(?:EXPLAIN|DESCRIBE|DESC)(?:\s+EXTENDED|\s+FORMAT\s*=\s*JSON)?)\s+{_QUERY}",
        rf"(?P<prefix>EXPLAIN|DESCRIBE|DESC)\s+{_TABLE}",
        r"(?P<prefix>SHOW\s+(?:(?:FULL\s+)?(?:COLUMNS|FIELDS)|INDEX|INDEXES|KEYS)\s+(?:FROM|IN)"
        rf"|SHOW\s+CREATE\s+(?:TABLE|VIEW))\s+{_TABLE}",
        r"(?P<prefix>SHOW\s+(?:(?:FULL\s+)?TABLES|DATABASES|SCHEMAS|TABLE\s+STATUS|COLLATION|CHARACTER\s+SET)"
        r"(?:\s+LIKE\s+'[A-Za-z0-9_%]*')?|SHOW\s+WARNINGS)",
    ),
    one_schema=True,
    fragile="sqlcrystal.databases.fragile:ends_the_server",
)
DUCKDB = EngineRecord(
    name="duckdb",
    spellings={"duckdb": "DuckDB"},
    opener="sqlcrystal.databases.duckdb:open_duckdb",
    modules=("duckdb",),
    suffixes=(".duckdb",),
    grammar="duckdb",
    quoted=rf"{_STANDARD}|{_DOUBLE}|(?P<prefix>[eE]){_ESCAPED}|[xX]'[^'\\]*'|{_DOLLAR}",
    strings_go_on=True,
    cuts_hex=True,
    factorial=True,
    absolute_value=True,
    pivots=True,
    inspections=(
        rf"(?P<prefix>EXPLAIN|DESCRIBE|SUMMARIZE)\s+{_QUERY}",
        r"(?P<prefix>SHOW\s+(?:ALL\s+)?TABLES|SHOW\s+DATABASES)",
        rf"(?P<prefix>DESCRIBE|SUMMARIZE|SHOW)\s+{_TABLE}",
    ),
    describes_in_from=True,
    tables_name_files=True,
    views_of_functions=True,
)
ENGINES = (SQLITE, POSTGRES, MYSQL, DUCKDB)
_BY_SPELLING = {spelling: engine for engine in ENGINES for spelling in engine.spellings}


def engine_of(dialect: str) -> EngineRecord:
    """Give the record of a dialect by any of its names."""
    found = _BY_SPELLING.get(dialect) or _BY_SPELLING.get(dialect.lower())
    if found is None:
        raise ConfigError.unknown("dialect", dialect, _BY_SPELLING)
    return found


def title_of(dialect: str) -> str:
    """Spell a dialect as people and prompts do."""
    return engine_of(dialect).spellings[dialect.lower()]


def locate(location: str) -> tuple[EngineRecord, Path]:
    """Tell the engine of a URL or path, and the file where it is one; a path without a scheme is SQLite's."""
    scheme, separator, rest = location.partition("://")
    if not separator:
        return SQLITE, Path(location)
    found = _BY_SPELLING.get(scheme.lower().partition("+")[0])
    if found is None:
        raise ConfigError.unknown("database", scheme, _BY_SPELLING)
    return found, Path(rest.removeprefix("/").partition("?")[0])


FILE_SCHEMES = tuple(f"{spelling}:///" for engine in ENGINES if engine.is_a_file for spelling in engine.spellings)
"""How the URL of a file begins."""
SUFFIXES = {suffix: engine for engine in ENGINES for suffix in engine.suffixes}
SQL_TAGS = frozenset({"sql", *_BY_SPELLING, *(tag for engine in ENGINES for tag in engine.tags)})
"""The names that models give a block of SQL."""


def location_of(path: Path) -> str:
    """Write the location of a file whose engine is told by how it ends."""
    engine = SUFFIXES.get(path.suffix, SQLITE)
    return str(path) if engine is SQLITE else f"{engine.name}:///{path}"


@cache
def words_of(name: str) -> Mapping[str, frozenset[str]]:
    """Read the word list of one engine."""
    # By its path, because `importlib.resources` loads zipfile and tempfile, which a first statement would wait for.
    text = Path(__file__).with_name("word_lists").joinpath(f"{name}.toml").read_text("utf-8")
    return {key: frozenset(words.split()) for key, words in tomllib.loads(text).items()}


@cache
def loaded(place: str) -> Any:
    """Import what a record names as `module:name`."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
