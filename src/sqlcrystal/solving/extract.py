"""SQL out of a model's reply in any form.

The rules, in order:
1. A reasoning model's <think>…</think> is dropped.
2. Of the complete fenced blocks that hold a query, the last one counts: models correct themselves downward.
3. Without one, a fence that was never closed (truncated output) counts up to the end of the reply.
4. Without any fence, the query starts at the first SELECT or WITH … AS ( that is not prose, and ends at a semicolon
   or at a blank line outside parentheses.
5. A block with several statements gives its last query; trailing semicolons and comments after them go.
A block fenced as SQL that holds no query (an UPDATE, say) is still taken, so that the guard refuses it on the record.
"""

import re

from sqlcrystal.databases.engines import SQL_TAGS

FENCE = re.compile(r"```[ \t]*(?P<tag>[A-Za-z0-9_+-]*)[ \t]*\n?(?P<body>.*?)```", re.DOTALL)
OPEN_FENCE = re.compile(r"```[ \t]*(?P<tag>[A-Za-z0-9_+-]*)[ \t]*\n?(?P<body>(?:(?!```).)*)\Z", re.DOTALL)
THINKING = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
LEXEME = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|--[^\n]*|/\*.*?\*/|;|.", re.DOTALL)
QUERY = re.compile(r"[\s(]*(?:SELECT|WITH|VALUES)\b", re.IGNORECASE)
START = re.compile(
    r"\bWITH\s+(?:RECURSIVE\s+)?[\"`\w]+\s*(?:\([^)]*\)\s*)?AS\s+(?:(?:NOT\s+)?MATERIALIZED\s+)?\("
    r"|\bWITH\s+(?:RECURSIVE\s+)?[\"`\w]+\s*(?:\([^)]*\)\s*)?AS\("
    r"|\bSELECT\s+(?=[\d'\"(*-])"
    r"|\bSELECT\s+(?=\w+\()"
    r"|\bSELECT\b(?=.*?\sFROM\s)",
    re.IGNORECASE | re.DOTALL,
)
REMARKS_BEFORE = re.compile(r"\A(?:--[^\n]*(?:\n|\Z)|/\*.*?\*/|\s|;)*", re.DOTALL)


def extract_sql(reply: str) -> str | None:
    """Find the one query a reply proposes, or None when it holds none."""
    text = THINKING.sub("", reply)
    blocks = _blocks(text)
    for body in reversed(blocks):
        if query := _last_query(body):
            return query
    if blocks:
        return _clean(blocks[-1]) or None
    return _unfenced(text)


def extract_blocks(reply: str) -> tuple[str, ...]:
    """Find every fenced query of a reply, in order, without repeats; a reply without fences gives its one query."""
    text = THINKING.sub("", reply)
    blocks = _blocks(text)
    queries = [query for body in blocks for query in _queries(body)]
    if not blocks and (query := _unfenced(text)):
        queries = [query]
    return tuple(dict.fromkeys(queries))


def _blocks(text: str) -> list[str]:
    """Find the bodies of the complete blocks that may be SQL, or else of the one block that was cut off."""
    complete = [match["body"] for match in FENCE.finditer(text) if _may_be_sql(match["tag"], match["body"])]
    if complete:
        return complete
    cut = OPEN_FENCE.search(FENCE.sub("", text))
    return [cut["body"]] if cut and _may_be_sql(cut["tag"], cut["body"]) else []


def _may_be_sql(tag: str, body: str) -> bool:
    """Tell whether a block is tagged as SQL, or looks like it under another tag or none."""
    if tag.upper() in {"SELECT", "WITH"}:  # "```SELECT 1```": the tag is the query's first word; see _unfenced
        return False
    return bool(body.strip()) and (tag.lower() in SQL_TAGS or bool(_queries(body)))


def _statements(sql: str) -> list[str]:
    """Split at semicolons outside quotes and comments."""
    parts = [""]
    for lexeme in LEXEME.findall(sql):
        if lexeme == ";":
            parts.append("")
        else:
            parts[-1] += lexeme
    return parts


def _queries(body: str) -> list[str]:
    """Find the statements of a block that read data, without leading or trailing comments."""
    cleaned = (_clean(part) for part in _statements(body))
    return [statement for statement in cleaned if QUERY.match(statement)]


def same_words(sql: str | None, other: str | None) -> bool:
    """Tell whether two queries differ in nothing but space, case and a semicolon."""
    return (sql or "").lower().rstrip("; \n").split() == (other or "").lower().rstrip("; \n").split()


def _last_query(body: str) -> str | None:
    """Find the last statement of a block that reads data."""
    queries = _queries(body)
    return queries[-1] if queries else None


def _clean(sql: str) -> str:
    """Strip space, semicolons, and comments before the first and after the last word."""
    return REMARKS_BEFORE.sub("", sql).strip().rstrip(";").strip()


def _unfenced(text: str) -> str | None:
    """Find the query of a reply without fences."""
    starts = [match.start() for match in START.finditer(text)]
    if not starts:
        return None
    at_line = [start for start in starts if not text[:start].rpartition("\n")[2].strip("`> \t")]
    start = (at_line or starts)[0]
    depth = 0
    end = len(text)
    quoted = text[:start].endswith("`")
    for lexeme in LEXEME.finditer(text, start):
        piece = lexeme.group()
        depth += (piece == "(") - (piece == ")")
        blank = piece == "\n" and depth <= 0 and re.match(r"[ \t]*\n", text[lexeme.end() :])
        if piece == ";" or blank or (piece.startswith("`") and (quoted or text.startswith("```", lexeme.start()))):
            end = lexeme.start()
            break
    return _clean(text[start:end]) or None
