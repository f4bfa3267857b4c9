"""Statements so plain that SQLite can read nothing into them but a query, told by their words alone.

For scoring alone: the guard reads the syntax tree, and to load its parser takes as long as to score a file of
predictions (LOG, 18 November 2026: with this 0.38 s of processor time a file, without it 0.75 s; 1.4 s and 3.2 s for
ten). Whatever people and models ask goes through the guard. A statement passes here only if it starts as a query, holds
one statement, no remark, nothing quoted that is called, and calls no function beyond a short list; what is less plain
is left to the guard. This says yes or "ask the guard", never no.
"""

import re

MAX_CHARACTERS = 10_000
MAX_PARENTHESES = 60
MAX_JOINS = 10
MAX_DATES = 5

_PLAIN = re.compile(
    r"(?:[A-Za-z_][A-Za-z0-9_]*+(?!['\"`$])|(?:\d++(?:\.\d*+)?+|\.\d++)(?![\w.$])"
    r"|'[^'\0]*+'|\"[^\"\0]*+\"|`[^`\0]*+`|\[[^\]\0]*+\]|[ \t\r\n]++|[(),]"
    r"|\.(?!\d)|(?:<=|>=|<>|!=|==|\|\||[-+*/<>=%])(?![-+*/<>=|!]))*+"
)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\[[^\]]*\]")
_DATES = ("date", "time", "year")
_DATE_CALL = re.compile(r"(?:date|time|year)[ \t\r\n]*\(")
_MARKS = "(),.=<>!|+-*/%"
_TO_BLANKS = str.maketrans(_MARKS, " " * len(_MARKS))
_QUOTES = "'\"`["
# WITH may begin a command, and what it names may multiply what is read.
_NOT_PLAIN = frozenset(
    {"alter", "attach", "create", "delete", "detach", "drop", "insert", "into", "reindex", "update", "vacuum", "with"}
)
_KEYWORDS = """
all and any as between by case distinct else except exists from having in intersect is join like limit not offset on or
over partition select then union using values when where
"""
_FUNCTIONS = """
abs avg cast ceil ceiling coalesce count cume_dist date datetime dense_rank first_value floor group_concat ifnull
iif instr julianday lag last_value lead length lower ltrim max min mod ntile nullif power rank replace round
row_number rtrim sign sqrt strftime substr substring sum time total trim upper
"""
_MAY_STAND_BEFORE_PARENTHESIS = frozenset((_KEYWORDS + _FUNCTIONS).split())


def is_plain(sql: str) -> bool:
    """Tell whether the text can be nothing but one harmless query; False means that the guard has to look."""
    text = sql.rstrip("; \t\r\n")
    lowered = text.lower()
    if _is_much(lowered) or _names_the_engine(lowered) or not _PLAIN.fullmatch(text):
        return False
    unquoted = _QUOTED.sub("''", lowered) if any(mark in lowered for mark in _QUOTES) else lowered
    words = unquoted.translate(_TO_BLANKS).split()
    if not words or not unquoted.lstrip().startswith("select") or words[0] != "select":
        return False
    return _NOT_PLAIN.isdisjoint(words) and _calls_the_usual(unquoted)


def _names_the_engine(lowered: str) -> bool:
    """Tell whether a table may be meant that is really a command or a view into the engine, however it is quoted."""
    return "pragma" in lowered or "sqlite" in lowered or "dbstat" in lowered


def _calls_the_usual(unquoted: str) -> bool:
    """Tell whether a mark, a keyword or a function of the list stands before every parenthesis."""
    for before in unquoted.split("(")[:-1]:
        ending = before.rstrip()
        if ending and ending[-1] not in _MARKS:
            word = ending.translate(_TO_BLANKS).rsplit(None, 1)[-1]
            if word not in _MAY_STAND_BEFORE_PARENTHESIS:
                return False
    return True


def _is_much(lowered: str) -> bool:
    """Deep nests of these are refused by the guard, whose parser would take long to read them."""
    return (
        len(lowered) > MAX_CHARACTERS
        or lowered.count("(") > MAX_PARENTHESES
        or lowered.count("join") > MAX_JOINS
        or (sum(map(lowered.count, _DATES)) > MAX_DATES and len(_DATE_CALL.findall(lowered)) > MAX_DATES)
    )
