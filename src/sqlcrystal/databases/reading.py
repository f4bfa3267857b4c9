"""The text an engine gets: the guard's own tokens put together again, so that what was checked is what runs.

Remarks never reach an engine, and no token stands so close to another that the two could be read as something else.
What the tokenizer cannot place as every engine would (white space beyond ASCII, control characters, Jinja, comments
inside comments, a number glued to a name) is refused.
"""

import re
from itertools import pairwise

from sqlglot.tokenizer_core import Token, TokenType

_NAME = r"[A-Za-z_\u0080-\U0010ffff][\w$]*"
_WORDS = rf"{_NAME}(?:[ \t\r\n]+{_NAME})*"
_NUMBER = r"(?:\d[\d_]*+(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?\d++)?+|0[xX][0-9A-Fa-f]++|0[bB][01]++"
_STANDARD = r"'(?:[^']|'')*'"
_DOUBLE = r'"(?:[^"]|"")*"'
_BACKTICK = r"`(?:[^`]|``)*`"
_ESCAPED = r"'(?:[^'\\]|\\.|'')*'"
_ESCAPED_DOUBLE = r'"(?:[^"\\]|\\.|"")*"'
_DOLLAR = r"(?P<tag>\$(?:[A-Za-z_]\w*)?\$).*(?P=tag)"
# How each engine spells a quoted piece; the first group is a prefix that changes how its inside is read.
_QUOTED = {
    "sqlite": rf"{_STANDARD}|{_DOUBLE}|{_BACKTICK}|\[[^\]]*\]|(?P<prefix>[xX])'[0-9A-Fa-f]*'",
    "mysql": rf"{_ESCAPED}|{_ESCAPED_DOUBLE}|{_BACKTICK}|(?P<prefix>[nN]){_ESCAPED}|[xX]'[0-9A-Fa-f]*'|[bB]'[01]*'",
    "postgres": rf"{_STANDARD}|{_DOUBLE}|(?P<prefix>[eE]){_ESCAPED}|[nN]{_STANDARD}|[xX]'[0-9A-Fa-f]*'|[bB]'[01]*'"
    rf"|[uU]&'[^'\\]*'|{_DOLLAR}",
    "duckdb": rf"{_STANDARD}|{_DOUBLE}|(?P<prefix>[eE]){_ESCAPED}|[xX]'[^'\\]*'|{_DOLLAR}",
}
_SPACE = r"[ \t\r\n]"
_BLOCK = r"/\*(?!!|M!)(?:(?!/\*|\*/).)*\*/"
# A dash comment ends at the line's end; engines do not agree whether a lone carriage return is one.
_LINE = r"--[^\r\n]*(?=\r?\n|\Z)"
_GAPS = {
    "sqlite": rf"(?:{_SPACE}|{_LINE}|{_BLOCK})*",
    "postgres": rf"(?:{_SPACE}|{_LINE}|{_BLOCK})*",
    "duckdb": rf"(?:{_SPACE}|{_LINE}|{_BLOCK})*",
    "mysql": rf"(?:{_SPACE}|--(?=[ \t]|\r?\n|\Z)[^\r\n]*(?=\r?\n|\Z)|#[^\r\n]*(?=\r?\n|\Z)|{_BLOCK})*",
}
_GAP = {dialect: re.compile(pattern, re.DOTALL) for dialect, pattern in _GAPS.items()}
_PIECE = {
    dialect: re.compile(
        rf"(?P<word>{_WORDS}{r'|[0-9]++[A-Za-z_$][0-9A-Za-z_$]*+' if dialect == 'mysql' else ''})|(?P<number>{_NUMBER})"
        rf"|(?P<quoted>{quoted})|(?P<sign>[-+*/<>=~!@#%^&|?:.,;()\[\]{{}}]+)",
        re.DOTALL,
    )
    for dialect, quoted in _QUOTED.items()
}
# What most statements are made of, and all engines read alike: no remark, no escape, no sign next to another.
_PLAIN = re.compile(
    r"(?:[A-Za-z_][A-Za-z0-9_]*+(?!['\"`$])|(?:\d++(?:\.\d++)?+|\.\d++)(?![\w.$])|'[^'\\]*+'|\"[^\"\\]*+\"|[ \t\n]++"
    r"|[(),;]|\.(?!\d)|(?:<=|>=|<>|!=|\|\||[-+*/<>=%])(?![-+*/<>=~!@#%^&|?:]))*+"
)
_CLOSED = frozenset("(),;[]{}")
_SIGNED = frozenset({"=", "<", ">", "<=", ">=", "<>", "!=", "*", "/", "+", "%", "||"})
_SHIFTS = frozenset("<>")
_APART = frozenset(" \t\n(,=<>+-*/%|")
_SURROGATE = re.compile("[\ud800-\udfff]")
_JINJA = frozenset({TokenType.BLOCK_START, TokenType.BLOCK_END})


class Unreadable(Exception):
    """Text that an engine might read otherwise than the guard; the message says where."""


def refuse_unreadable(sql: str, dialect: str) -> None:
    """Refuse what no tokenizer need be asked about."""
    if "\x00" in sql:
        raise Unreadable("the statement holds a NUL character")
    if dialect == "mysql" and ("/*!" in sql or "/*M!" in sql):
        raise Unreadable("a comment that MySQL executes is not allowed in a read-only query")
    if not sql.isascii() and _SURROGATE.search(sql):
        raise Unreadable("the statement holds half of a character (a lone surrogate)")


def rebuild(sql: str, tokens: list[Token], dialect: str) -> str:
    """The statement's tokens as the engine shall read them, without remarks and final semicolons."""
    if _PLAIN.fullmatch(sql):
        return sql.rstrip("; \t\n")
    kept = list(tokens)
    while kept and kept[-1].token_type is TokenType.SEMICOLON:
        kept.pop()
    return _Rebuilding(sql, dialect).text(kept)


class _Rebuilding:
    """One pass over the tokens of one text."""

    def __init__(self, sql: str, dialect: str) -> None:
        self._sql = sql
        self._dialect = dialect
        self._gap = _GAP[dialect]
        self._piece = _PIECE[dialect]

    def text(self, tokens: list[Token]) -> str:
        """Every piece, with between two of them what the writer put there, or a blank where they need one."""
        self._between(0, tokens[0].start)
        self._between(tokens[-1].end + 1, len(self._sql), last=True)
        pieces = [self._read(token) for token in tokens]
        parts = [pieces[0][1]]
        for (before, token), (left, right) in zip(pairwise(tokens), pairwise(pieces), strict=True):
            parts += [self._space(before, token, left, right), right[1]]
        return "".join(parts)

    def _read(self, token: Token) -> tuple[str, str]:
        """The kind and the canonical text of one token."""
        raw = self._sql[token.start : token.end + 1]
        match = self._piece.fullmatch(raw)
        if not match or token.token_type in _JINJA:
            raise Unreadable(f"{_shown(raw)} is not read alike by parser and engine")
        kind = str(match.lastgroup if match.lastgroup in {"word", "number", "sign"} else "quoted")
        if (
            kind == "word"
            and not raw.isascii()
            and not all(part.isidentifier() for part in raw.replace("$", "_").split())
        ):
            raise Unreadable(f"{_shown(raw)} holds a character that is part of no name")
        if kind == "quoted" and match["prefix"]:
            return "prefixed", raw
        if kind == "quoted" and raw.startswith("$"):
            return kind, "'" + token.text.replace("'", "''") + "'"
        return kind, raw

    def _space(self, before: Token, token: Token, left: tuple[str, str], right: tuple[str, str]) -> str:
        """What stands between two tokens; nothing only where no engine could then read them as one."""
        gap = self._between(before.end + 1, token.start)
        if left[0] == "prefixed" and right[0] in {"quoted", "prefixed"} and self._dialect in {"postgres", "duckdb"}:
            raise Unreadable("a string with escapes goes on in another")
        if gap or left[1] in _CLOSED or right[1] in _CLOSED:
            return gap
        kinds = {left[0], right[0]}
        if left[1] == "." and right[0] == "number" and right[1].isdigit() and self._begins_a_number(before):
            return ""
        if "number" in kinds and (kinds != {"number", "sign"} or "." in {left[1], right[1]}):
            raise Unreadable(f"{_shown(left[1] + right[1])} is a number glued to something else")
        if token.token_type is TokenType.HEREDOC_STRING:
            raise Unreadable(f"{_shown(left[1])} may be one name with what follows")
        if kinds == {"sign"}:
            shift = left[1] == right[1] and left[1] in _SHIFTS
            signed = self._dialect in {"sqlite", "mysql"} and left[1] in _SIGNED and right[1] in {"-", "+"}
            return "" if shift or signed else " "
        if "sign" not in kinds:
            return " "
        if left[1] in {"@", "@@"}:
            return "" if self._dialect == "mysql" and right[0] == "word" else " "
        return " " if {left[1], right[1]} & {"&", "#", "?", ":", "@", "@@", "$"} else ""

    def _begins_a_number(self, dot: Token) -> bool:
        """Whether a dot stands apart from what is before it, so that every engine reads it as the start of a number."""
        return dot.start > 0 and self._sql[dot.start - 1] in _APART

    def _between(self, start: int, end: int, *, last: bool = False) -> str:
        """The white space of a gap, remarks left out; a blank where only remarks stood."""
        text = self._sql[start:end]
        if not text:
            return ""
        if last:
            text = text.replace(";", " ")
        if not self._gap.fullmatch(text):
            raise Unreadable(f"{_shown(text.strip() or text)} is not white space or a remark to every engine")
        if text.isspace():
            return text
        return "\n" if "\n" in text else " "


def _shown(text: str) -> str:
    return ascii(text if len(text) <= 40 else text[:39] + "…")
