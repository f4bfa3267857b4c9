"""A shallow look at SQL text: enough to find keywords outside strings, quoted names and comments.

Not a parser: the rules that need it mirror evaluators which look at tokens only, and the text may not be SQL at all.
"""

import re
from functools import lru_cache

_SKIPPED = r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?(?:\*/|\Z)"""
_QUOTED = re.compile(r"""('(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^\]]*\])""")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")
_QUOTES = ("'", '"', "`", "[")
_UNUSUAL = ("--", "/*", "x'", 'x"')
_DISTINCT = re.compile(rf"({_SKIPPED})|\bdistinct\b", re.IGNORECASE | re.DOTALL)
_ORDER_OR_PARENTHESIS = re.compile(rf"(?:{_SKIPPED})|(\()|(\))|(\border\s+by\b)", re.IGNORECASE | re.DOTALL)
_VOLATILE = re.compile(
    r"\b(?:now|today|current_date|current_time|current_timestamp|curdate|localtime|random|randomblob|gen_random_uuid)\b"
    r"|\b(?:date|time|datetime|julianday|unixepoch)\s*\(\s*\)",
    re.IGNORECASE,
)


@lru_cache(maxsize=65_536)
def sqlite_key(sql: str) -> str:
    """A text that two statements share only if SQLite reads the same tokens in both: case and layout are folded.

    Only for SQLite, where neither can change a row of the result. Text that is not plain (comments, BLOB literals,
    control or non-ASCII characters) is left as it is.
    """
    lowered = sql.lower()
    if not sql.isascii() or any(mark in lowered for mark in _UNUSUAL) or _has_control_character(sql):
        return sql
    if not any(mark in sql for mark in _QUOTES):
        return _fold(lowered).rstrip(" ;")
    parts = _QUOTED.split(sql)
    parts[::2] = [_fold(part.lower()) for part in parts[::2]]
    return " ".join(parts).rstrip(" ;")


def _has_control_character(sql: str) -> bool:
    """Tell whether there is one that is not layout; that a text is printable is known much faster."""
    return not sql.isprintable() and _CONTROL.search(sql) is not None


def _fold(part: str) -> str:
    """Single blanks, and none beside a comma or parenthesis, which end a token by themselves."""
    text = " ".join(part.split())
    for mark in ",()":
        text = text.replace(f" {mark}", mark).replace(f"{mark} ", mark)
    return text


def without_distinct(sql: str) -> str:
    """The text with every DISTINCT keyword cut out."""
    if "distinct" not in sql.lower():
        return sql
    return _DISTINCT.sub(lambda match: match.group(1) or "", sql)


def orders_its_result(sql: str) -> bool:
    """Tell whether ORDER BY stands outside every parenthesis, so that it orders the final rows."""
    if "order" not in sql.lower():
        return False
    depth = 0
    for match in _ORDER_OR_PARENTHESIS.finditer(sql):
        if match.group(1):
            depth += 1
        elif match.group(2):
            depth -= 1
        elif match.group(3) and depth <= 0:
            return True
    return False


def may_change_between_runs(sql: str) -> bool:
    """Tell whether the text mentions the clock or chance, so that its rows must not outlive the run."""
    return _VOLATILE.search(sql) is not None


# ── SQL as a rule executes it ────────────────────────────────────────────────────────────────────────────────────────

_CURRENT_YEAR = re.compile(r"YEAR\s*\(\s*CURDATE\s*\(\s*\)\s*\)\s*", re.IGNORECASE)


def prepare_gold(sql: str, rule: str) -> str:
    """Gold as the rule executes it."""
    return _as_spider_does(sql) if rule == "test-suite" else sql


def prepare_prediction(sql: str, rule: str) -> str:
    """A prediction as the rule executes it; Spider also fills a lone `value` slot with 1."""
    return _as_spider_does(sql.replace(" value ", " 1 ")) if rule == "test-suite" else sql


def _as_spider_does(sql: str) -> str:
    """Join split operators, drop DISTINCT, and read the current year as 2020."""
    joined = sql.replace("> =", ">=").replace("< =", "<=").replace("! =", "!=")
    return _CURRENT_YEAR.sub("2020", without_distinct(joined))
