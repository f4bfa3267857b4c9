"""Readers of queries that were run: files of SQL, tables with counts, exports of BI tools, dbt, PostgreSQL."""

import codecs
import csv
import io
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import yaml
from msgspec import Struct

from sqlcrystal.databases.engines import engine_of
from sqlcrystal.databases.parsing import MAX_CHARACTERS, Unparsable, tokenize
from sqlcrystal.errors import DataError, UserError
from sqlcrystal.protocols import Database
from sqlcrystal.types import Failure

LONGEST_PLACE = 200


class Reason(StrEnum):
    """The reason that a statement of a log is not learned from; the same few for every log, to be counted."""

    TOO_LONG = "too long"
    UNREADABLE = "not SQL of this database"
    LETTERS = "letters that are not UTF-8"
    CELLS = "a row with more cells than columns: its SQL must stand in quotes"
    TOO_MUCH = "too much for the parser"
    WRITES = "no query: it writes, defines or sets something"
    SECRET = "holds what looks like a secret"
    TEMPLATE = "a template beyond ref, source and config"
    NO_SQL = "no SQL in it"
    HIDDEN = "its text is hidden from this account"
    NO_TABLE = "asks no table of the database"
    PARAMETER = "a parameter that nothing gives a value"
    GUARDED = "the guard refuses it"
    FAILS = "does not run today"
    LATE = "takes too long"
    EMPTY = "returns nothing that could be compared"


class LoggedQuery(Struct, frozen=True):
    """One statement, with its uses and its place."""

    sql: str
    uses: int = 1
    place: str = ""


class Refused(Struct, frozen=True):
    """A statement that is not learned from."""

    reason: Reason
    place: str = ""
    uses: int = 1


Found: TypeAlias = LoggedQuery | Refused
"""All that a reader can make of one entry of a log."""


_REMARK = re.compile(r"\{#.*?#\}", re.DOTALL)
_CONFIG = re.compile(r"\{\{-?\s*config\s*\([^{}]*\)\s*-?\}\}")
_TEXT = r"""\s*(?:'([\w.$ -]+)'|"([\w.$ -]+)")\s*"""
_REF = re.compile(rf"\{{\{{-?\s*ref\s*\((?:{_TEXT},)?{_TEXT}(?:,\s*v(?:ersion)?\s*=\s*\w+\s*)?\)\s*-?\}}\}}")
_SOURCE = re.compile(rf"\{{\{{-?\s*source\s*\({_TEXT},{_TEXT}\)\s*-?\}}\}}")
_JINJA = re.compile(r"\{\{|\{%|\{#")
_ALIAS = re.compile(r"""\{\{-?\s*config\s*\([^{}]*?\balias\s*=\s*['"](\w+)['"]""")
_OPTIONAL = re.compile(r"\[\[(?:(?!\[\[|\]\]).)*\]\]", re.DOTALL)
_VARIABLE = re.compile(r"\{\{\s*([\w -]+?)\s*\}\}")
_QUOTED = re.compile(r"'(?:[^']|'')*'")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def is_template(text: str) -> bool:
    """Tell whether SQL holds a template's braces outside its texts: a parser may take them for something else."""
    return _JINJA.search(_QUOTED.sub("''", text)) is not None


def dbt_alias(text: str) -> str:
    """Give the name of the relation that a model is built as, where its config says another than the file's."""
    found = _ALIAS.search(text)
    return found[1] if found else ""


def from_dbt(text: str, aliases: Mapping[str, str], tables: Mapping[tuple[str, str], str]) -> str | None:
    """Resolve ref, source and config of a model; None where it holds more Jinja than that.

    A model stands for its relation (`aliases`), a source for the table that the project declares (`tables`).
    """
    plain = _CONFIG.sub("", _REMARK.sub("", text))

    def relation(found: re.Match[str]) -> str:
        name = next(group for group in (found[3], found[4]) if group)
        return aliases.get(name, name)

    def table(found: re.Match[str]) -> str:
        source, name = found[1] or found[2], found[3] or found[4]
        return tables.get((source, name), name)

    resolved = _SOURCE.sub(table, _REF.sub(relation, plain))
    return None if _JINJA.search(resolved) else resolved


def from_metabase(text: str, tags: Mapping[str, Any]) -> str | None:
    """Fill the variables of a native question: defaults where it has them, else parameters; optional parts go."""
    plain = _OPTIONAL.sub("", text)
    strange: list[str] = []

    def value(found: re.Match[str]) -> str:
        tag = tags.get(found[1])
        kind = tag.get("type", "text") if isinstance(tag, Mapping) else "text"
        if kind in ("dimension", "card", "snippet") or found[1].startswith(("snippet:", "#")):
            strange.append(found[1])  # a filter on a field, another question or a shared piece, which are not here
            return ""
        given = tag.get("default") if isinstance(tag, Mapping) else None
        if isinstance(given, list):
            given = given[0] if len(given) == 1 else None
        if given is None:
            return ":" + re.sub(r"\W", "_", found[1])
        if kind == "number" and _NUMBER.fullmatch(str(given)):
            return str(given)
        return "'" + str(given).replace("'", "''") + "'"

    filled = _VARIABLE.sub(value, plain)
    return None if strange or _JINJA.search(filled) else filled


PG_STATEMENTS = "pg_stat_statements"
MOST_BYTES = 500_000_000
"""Of one file: an export that is larger is cut by its owner, who knows which part matters."""
SUFFIXES = (".sql", ".csv", ".tsv", ".json", ".jsonl")
SQL_COLUMNS = ("query", "sql", "statement", "query_text", "sql_text", "native_query")
USE_COLUMNS = ("calls", "count", "uses", "executions", "execution_count", "runs", "n", "view_count")
PROJECT = "dbt_project.yml"
_TOGETHER = 20
"""Lines ending in a semicolon that may belong to one statement, where a text holds such a line."""
_DEEPEST = 30
_STATEMENTS = (
    "SELECT query, calls FROM pg_stat_statements"
    " WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) ORDER BY calls DESC, query"
)

KEEPS_STATISTICS = ("postgres", "postgresql")
"""Engines that count the queries they run."""


def read_log(path: Path, dialect: str) -> Iterator[Found]:
    """Read a file, a folder or a dbt project; a file that no reader knows is a mistake, one in a folder is not."""
    if (path / PROJECT).is_file():
        yield from _dbt_project(path, dialect)
    elif path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES and file.is_file())
        if not files:
            raise DataError(f"{path}: no file ending in {', '.join(SUFFIXES)} there, and no {PROJECT}")
        for file in files:
            yield from _of_a_folder(file, str(file.relative_to(path)), dialect)
    else:
        yield from read_text(read_file(path), path.name, dialect)


def _of_a_folder(file: Path, name: str, dialect: str) -> Iterator[Found]:
    try:
        yield from read_text(read_file(file), name, dialect)
    except DataError:  # a folder holds other things, too
        yield Refused(Reason.NO_SQL, name[-LONGEST_PLACE:])


def read_text(text: str, name: str, dialect: str) -> Iterator[Found]:
    """Read the text of one file, by the ending of its name."""
    suffix = Path(name).suffix.lower()
    name = name[-LONGEST_PLACE:]
    if suffix == ".sql":
        yield from _statements(text, name, dialect)
    elif suffix in (".csv", ".tsv"):
        yield from _table(text, name)
    elif suffix in (".json", ".jsonl"):
        yield from _export(text, name)
    else:
        raise DataError(f"{name}: not a log that can be read; choose a file ending in {', '.join(SUFFIXES)}")


def read_server(database: Database) -> Iterator[Found]:
    """Read what a PostgreSQL server counted of this database; parameters stand in the place of literals there."""
    if engine_of(database.dialect).name not in KEEPS_STATISTICS:
        raise UserError(f"{PG_STATEMENTS}: only PostgreSQL keeps it, and {database.name} is {database.dialect}")
    rows = database.execute(_STATEMENTS)
    if isinstance(rows, Failure):
        raise UserError(f"{PG_STATEMENTS}: cannot be read ({rows.message}); the extension must be created here")
    for text, calls in rows.rows:
        uses = int(calls) if isinstance(calls, int | float) else 1
        if text is None or text == "<insufficient privilege>":
            yield Refused(Reason.HIDDEN, PG_STATEMENTS, uses)
        else:
            yield LoggedQuery(str(text), uses, PG_STATEMENTS)


def read_file(file: Path) -> str:
    """Read the text of a file, which must not be too large."""
    try:
        if file.stat().st_size > MOST_BYTES:
            raise DataError(f"{file}: larger than {MOST_BYTES // 1_000_000} MB; give a part of it")
        return text_in(file.read_bytes())
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror})") from None


def text_in(raw: bytes, *, errors: str = "replace") -> str:
    """Decode the bytes of a file: UTF-8, or UTF-16 where its first bytes say so, as Windows writes; marks elsewhere."""
    utf_16 = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = raw.decode("utf-16" if utf_16 else "utf-8-sig", errors=errors)
    return text.replace("\r\n", "\n").replace("\r", "\n")


# ── SQL ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _statements(text: str, name: str, dialect: str) -> Iterator[Found]:
    """Cut a text where statements end: at lines with a final semicolon, then by its words.

    Cutting by lines first keeps a statement of many megabytes from the tokenizer, and a broken one from its neighbours.
    """
    pieces = list(_pieces(text))
    at = 0
    while at < len(pieces):
        taken, found = _whole(pieces[at : at + _TOGETHER], name, dialect)
        yield from found
        at += taken


def _whole(pieces: list[tuple[int, str]], name: str, dialect: str) -> tuple[int, list[Found]]:
    """Give the statements of the first piece, joined with those after it where it ends within a text; and how many."""
    place = f"{name}:{pieces[0][0]}"
    if len(pieces[0][1]) > MAX_CHARACTERS:
        return 1, [Refused(Reason.TOO_LONG, place)]
    joined = ""
    for taken, (_, piece) in enumerate(pieces, start=1):
        joined += piece
        split = _split(joined, place, dialect) if len(joined) <= MAX_CHARACTERS else None
        if split is not None:
            return taken, split
    return 1, [Refused(Reason.UNREADABLE, place)]


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Cut a text after each line that ends in a semicolon; with the number of the first line that is not blank."""
    gathered: list[str] = []
    start = 1
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        if not gathered and not line.strip():
            continue
        if not gathered:
            start = number
        gathered.append(line)
        if line.rstrip().endswith(";"):
            yield start, "".join(gathered)
            gathered = []
    if gathered:
        yield start, "".join(gathered)


def _split(text: str, place: str, dialect: str) -> list[Found] | None:
    """Split by semicolons that are words of their own; None where the text ends within a quoted one."""
    try:
        tokens = tokenize(text, dialect)
    except Unparsable:
        return None
    ends = [token.start for token in tokens if token.text == ";" and text[token.start] == ";"]
    spans = list(zip([0, *(end + 1 for end in ends)], [*ends, len(text)], strict=True))
    words = [token.start for token in tokens]
    said = [span for span in spans if bisect_left(words, span[0]) < bisect_left(words, span[1])]
    return [LoggedQuery(text[start:end].strip(), 1, place) for start, end in said]


# ── tables with counts ───────────────────────────────────────────────────────────────────────────────────────────────


def _table(text: str, name: str) -> Iterator[Found]:
    """Read rows with a column of SQL and, where there is one, a column of counts.

    A row that has more cells than columns holds SQL with commas outside quotes: a part of it would be another query.
    """
    before = csv.field_size_limit(MOST_BYTES)
    try:
        rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=_delimiter(text))
        columns = {str(column).strip().casefold(): column for column in rows.fieldnames or ()}
        sql = next((columns[column] for column in SQL_COLUMNS if column in columns), None)
        if sql is None:
            raise DataError(f"{name}: no column of SQL; name one of them {', '.join(SQL_COLUMNS)}")
        uses = next((columns[column] for column in USE_COLUMNS if column in columns), None)
        for number, row in enumerate(rows, start=2):
            written, place = (row.get(sql) or "").strip(), f"{name}:{number}"
            if any(row.get(None) or ()):
                yield Refused(Reason.CELLS, place)
            elif written:
                yield LoggedQuery(written.rstrip("; \n"), _count(row.get(uses) if uses else None), place)
    except csv.Error as error:
        raise DataError(f"{name}: not a table ({error})") from None
    finally:
        csv.field_size_limit(before)


def _delimiter(text: str) -> str:
    """Tell which sign parts the names of the columns: a comma, a tab, or where a comma is a decimal's a semicolon."""
    header = text.lstrip().partition("\n")[0]
    return max(",\t;", key=header.count)


def _count(value: object) -> int:
    digits = re.sub(r"[,_ ]", "", str(value if value is not None else 1)).partition(".")[0]
    return max(1, int(digits)) if digits.isdecimal() and len(digits) < 16 else 1


# ── exports of BI tools ──────────────────────────────────────────────────────────────────────────────────────────────


def _export(text: str, name: str) -> Iterator[Found]:
    """Find the questions in an export: Metabase's, or any objects with a text of SQL; one document or one a line."""
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        try:
            document = msgspec.json.Decoder().decode_lines(text)
        except (msgspec.DecodeError, RecursionError):
            raise DataError(f"{name}: not JSON ({error})") from None
    yield from _questions(document, name, 0)


def _questions(node: object, name: str, depth: int) -> Iterator[Found]:
    if depth > _DEEPEST:
        return
    if isinstance(node, list):
        for item in node:
            yield from _questions(item, name, depth + 1)
    elif isinstance(node, Mapping):
        found = _question(node, name)
        if found is not None:
            yield found
            return
        for item in node.values():
            yield from _questions(item, name, depth + 1)


def _question(node: Mapping[str, Any], name: str) -> Found | None:
    """Give the query of one saved question; None for an object that is none."""
    title = str(node.get("name") or node.get("label") or "")
    place = f"{name}: {title}"[:LONGEST_PLACE] if title else name
    uses = next((_count(node[column]) for column in USE_COLUMNS if node.get(column) is not None), 1)
    asked = node.get("dataset_query")
    if isinstance(asked, Mapping):
        native = asked.get("native")
        if not isinstance(native, Mapping) or not isinstance(native.get("query"), str):
            return Refused(Reason.NO_SQL, place, uses)  # it was clicked together, and Metabase writes its SQL
        tags = native.get("template-tags")
        filled = from_metabase(native["query"], tags if isinstance(tags, Mapping) else {})
        return Refused(Reason.TEMPLATE, place, uses) if filled is None else LoggedQuery(filled, uses, place)
    written = next((node[key] for key in SQL_COLUMNS if isinstance(node.get(key), str)), None)
    return None if written is None else LoggedQuery(written.strip().rstrip(";"), uses, place)


# ── dbt ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _dbt_project(folder: Path, dialect: str) -> Iterator[Found]:
    """Read the models and analyses of a project as they would read the database that it builds."""
    project = yaml_of(folder / PROJECT)
    models = files_of(folder, model_places(project), ".sql")
    analyses = files_of(folder, project.get("analysis-paths", ["analyses", "analysis"]), ".sql")
    texts = {file: read_file(file) for file in (*models, *analyses)}
    aliases = model_tables({file: texts[file] for file in models})
    tables = _sources(folder, project)
    for file, text in texts.items():
        place = str(file.relative_to(folder))[-LONGEST_PLACE:]
        resolved = from_dbt(text, aliases, tables)
        if resolved is None:
            yield Refused(Reason.TEMPLATE, place)
        else:
            yield from _statements(resolved, place, dialect)


def model_places(project: Mapping[str, Any]) -> object:
    """Tell in which folders a project keeps its models."""
    return project.get("model-paths", ["models"])


def model_tables(models: Mapping[Path, str]) -> dict[str, str]:
    """Tell which table each model makes, from the texts of their files."""
    return {file.stem: dbt_alias(text) or file.stem for file, text in models.items()}


def _sources(folder: Path, project: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """Read which table each source is, where its name is not the table's."""
    tables: dict[tuple[str, str], str] = {}
    for suffix in (".yml", ".yaml"):
        for file in files_of(folder, model_places(project), suffix):
            for source in listed(yaml_of(file).get("sources")):
                for table in listed(source.get("tables")):
                    name = str(table.get("name", ""))
                    tables[str(source.get("name", "")), name] = str(table.get("identifier") or name)
    return tables


def files_of(folder: Path, places: object, suffix: str) -> list[Path]:
    """List the files of a kind in folders of a project, and in none outside it."""
    named = [str(place) for place in places] if isinstance(places, list) else []
    inside = [folder / place for place in named if (folder / place).resolve().is_relative_to(folder.resolve())]
    return sorted({file for place in inside if place.is_dir() for file in place.rglob(f"*{suffix}")})


def listed(node: object) -> list[Mapping[str, Any]]:
    """List the tables of a YAML node; none where it holds something else."""
    return [item for item in node if isinstance(item, Mapping)] if isinstance(node, list) else []


def yaml_of(file: Path) -> Mapping[str, Any]:
    """Read a file of YAML; what is no table counts as an empty one."""
    try:
        document = yaml.safe_load(read_file(file))
    except (yaml.YAMLError, RecursionError) as error:
        raise DataError(f"{file}: not YAML ({' '.join(str(error).split())[:200]})") from None
    return document if isinstance(document, Mapping) else {}
