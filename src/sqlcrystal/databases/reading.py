"""A statement between parser and engine: its tokens as sqlglot's grammar takes them, and the text the engine gets.

The text is the guard's own tokens put together again, so that what was checked is what runs: no token stands so close
to another that the two could be read as something else, and remarks reach only an engine that names columns by them.
Where an engine has what sqlglot's grammar lacks, tokens that it cuts in two are made whole, and words that call nothing
are kept from it. What the tokenizer cannot place as every engine would (white space beyond ASCII, control characters,
Jinja, comments inside comments, a number glued to a name) is refused.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from sqlglot.tokenizer_core import Token, TokenType

from sqlcrystal.databases.engines import EngineRecord

_NAME = r"[A-Za-z_\u0080-\U0010ffff][\w$]*"
_WORDS = rf"{_NAME}(?:[ \t\r\n]+{_NAME})*"
_NUMBER = r"(?:\d[\d_]*+(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?\d++)?+|0[xX][0-9A-Fa-f]++|0[bB][01]++"
_DIGITS_FIRST = r"|[0-9]++[A-Za-z_$][0-9A-Za-z_$]*+"
_SIGNS = r"[-+*/<>=~!@#%^&|?:.,;()\[\]{}]+"
_SPACE = r"[ \t\r\n]"
_BLOCK = r"/\*(?!!|M!)(?:(?!/\*|\*/).)*\*/"
# Pieces that most statements are made of, and all engines read alike: no remark, no escape, no sign next to another.
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
_OPERATOR = re.compile(r"[-+*/<>=~!@#%^&|?]+")
_CUT = re.compile(r"[-+*/<>=~!@#%^&|?]{2}")
_QUOTED_TOKENS = frozenset({TokenType.STRING, TokenType.IDENTIFIER})
_BEFORE_VALUES = frozenset(
    {TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT, TokenType.ALL, TokenType.L_PAREN, TokenType.SEMICOLON}
)
# SQL/JSON's clauses on wrappers, quotes, and what is not there, which stand behind a path.
_CLAUSE_WORDS = frozenset({"WRAPPER", "QUOTES", "EMPTY", "ERROR"})
_LITERAL = "…"
_CLAUSES = (
    *(
        (*before, "ON", after)
        for before in (("NULL",), ("ERROR",), ("DEFAULT", _LITERAL))
        for after in ("EMPTY", "ERROR")
    ),
    ("WITH", "UNCONDITIONAL", "ARRAY", "WRAPPER"),
    ("WITH", "CONDITIONAL", "ARRAY", "WRAPPER"),
    ("WITH", "UNCONDITIONAL", "WRAPPER"),
    ("WITH", "CONDITIONAL", "WRAPPER"),
    ("WITHOUT", "ARRAY", "WRAPPER"),
    ("WITH", "ARRAY", "WRAPPER"),
    ("WITHOUT", "WRAPPER"),
    ("WITH", "WRAPPER"),
    ("KEEP", "QUOTES", "ON", "SCALAR", "STRING"),
    ("OMIT", "QUOTES", "ON", "SCALAR", "STRING"),
    ("KEEP", "QUOTES"),
    ("OMIT", "QUOTES"),
)


_HINT = "/*+"
"""Begins a remark that steers MySQL behind SELECT and nothing elsewhere: it is dropped all the same."""
_HEX = re.compile(r"[xX]'")
_ODBC = (TokenType.L_BRACE, TokenType.VAR, TokenType.STRING, TokenType.R_BRACE)
_ODBC_WORDS = frozenset({"d", "t", "ts"})
_OPERANDS = frozenset(
    {TokenType.NUMBER, TokenType.STRING, TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN, TokenType.R_BRACKET}
)
_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})
_BEHIND_A_PIVOT = frozenset({TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET})


class Unreadable(Exception):
    """Text that an engine might read otherwise than the guard; the message says where."""


def refuse_unreadable(sql: str, engine: EngineRecord) -> None:
    """Refuse what no tokenizer need be asked about."""
    if "\x00" in sql:
        raise Unreadable("the statement holds a NUL character")
    if any(remark in sql for remark in engine.executed_remarks):
        raise Unreadable("a comment that the engine executes is not allowed in a read-only query")
    if not sql.isascii() and _SURROGATE.search(sql):
        raise Unreadable("the statement holds half of a character (a lone surrogate)")


def rebuild(sql: str, tokens: list[Token], engine: EngineRecord) -> str:
    """Put the statement's tokens together as the engine shall read them, without final semicolons."""
    if _PLAIN.fullmatch(sql):
        return sql.rstrip("; \t\n")
    kept = list(tokens)
    while kept and kept[-1].token_type is TokenType.SEMICOLON:
        kept.pop()
    return _Rebuilding(sql, engine).text(kept)


class _Rebuilding:
    """One pass over the tokens of one text."""

    def __init__(self, sql: str, engine: EngineRecord) -> None:
        self._sql = sql
        self._engine = engine
        self._gap = _gap(engine.line_remarks)
        self._piece = _piece(engine.quoted, engine.digits_begin_names)

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
        """Tell what stands between two tokens; nothing only where no engine could then read them as one."""
        gap = self._between(before.end + 1, token.start)
        if left[0] == "prefixed" and right[0] in {"quoted", "prefixed"} and self._engine.strings_go_on:
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
            signed = self._engine.signs_stand_close and left[1] in _SIGNED and right[1] in {"-", "+"}
            return "" if shift or signed else " "
        if "sign" not in kinds:
            return " "
        if left[1] in {"@", "@@"}:
            return "" if self._engine.variables and right[0] == "word" else " "
        return " " if {left[1], right[1]} & {"&", "#", "?", ":", "@", "@@", "$"} else ""

    def _begins_a_number(self, dot: Token) -> bool:
        """Tell whether a dot stands apart from what is before it: every engine then reads it as a number's start."""
        return dot.start > 0 and self._sql[dot.start - 1] in _APART

    def _between(self, start: int, end: int, *, last: bool = False) -> str:
        """Give the white space of a gap, remarks left out unless the engine gets them; a blank for a remark alone."""
        text = self._sql[start:end]
        if not text:
            return ""
        if last:
            text = text.replace(";", " ")
        if not self._gap.fullmatch(text):
            raise Unreadable(f"{_shown(text.strip() or text)} is not white space or a remark to every engine")
        if text.isspace() or (self._engine.keeps_remarks and _HINT not in text):
            return text
        return "\n" if "\n" in text else " "


@cache
def _gap(line_remarks: tuple[str, ...]) -> re.Pattern[str]:
    """Tell what may stand between two tokens."""
    return re.compile(rf"(?:{'|'.join([_SPACE, *line_remarks, _BLOCK])})*", re.DOTALL)


@cache
def _piece(quoted: str, digits_begin_names: bool) -> re.Pattern[str]:
    """Tell what one token may be."""
    words = _WORDS + (_DIGITS_FIRST if digits_begin_names else "")
    return re.compile(rf"(?P<word>{words})|(?P<number>{_NUMBER})|(?P<quoted>{quoted})|(?P<sign>{_SIGNS})", re.DOTALL)


def _shown(text: str) -> str:
    return ascii(text if len(text) <= 40 else text[:39] + "…")


def whole(tokens: list[Token], sql: str, engine: EngineRecord) -> list[Token]:
    """Join the tokens that sqlglot cuts and the engine does not: `!~`, `<<=`, `x'41'`.

    The parser takes a joined operator for another with two sides.
    """
    if engine.cuts_hex and _HEX.search(sql):
        tokens = list(_with_hex(tokens))
    operators = engine.list("operators")
    if not operators or not _CUT.search(sql):
        return tokens
    made: list[Token] = []
    position = 0
    while position < len(tokens):
        first, end = tokens[position], _end_of_operator(tokens, position, sql)
        text = sql[first.start : tokens[end].end + 1]
        if end > position and text in operators:
            made.append(
                Token(TokenType.DPIPE, text, first.line, first.col, first.start, tokens[end].end, first.comments)
            )
        else:
            made += tokens[position : end + 1]
        position = end + 1
    return made


def _end_of_operator(tokens: list[Token], start: int, sql: str) -> int:
    """The last of the tokens that stand close to one another and hold nothing but signs of operators."""
    end = start
    if not _is_operator(tokens[start], sql):
        return end
    while end + 1 < len(tokens) and tokens[end + 1].start == tokens[end].end + 1 and _is_operator(tokens[end + 1], sql):
        end += 1
    return end


def _is_operator(token: Token, sql: str) -> bool:
    return _OPERATOR.fullmatch(sql, token.start, token.end + 1) is not None


def _with_hex(tokens: list[Token]) -> Iterator[Token]:
    """Join an x with the string right behind it."""
    waiting: Token | None = None
    for token in tokens:
        if waiting and token.token_type is TokenType.STRING and token.start == waiting.end + 1:
            yield Token(
                TokenType.HEX_STRING, token.text, waiting.line, waiting.col, waiting.start, token.end, waiting.comments
            )
            waiting = None
            continue
        if waiting:
            yield waiting
        waiting = token if token.token_type is TokenType.VAR and token.text in {"x", "X"} else None
        if waiting is None:
            yield token
    if waiting:
        yield waiting


def for_the_parser(tokens: list[Token], engine: EngineRecord) -> list[Token]:
    """Give the tokens as sqlglot's grammar of the dialect takes them."""
    words = {token.text.upper() for token in tokens}
    types = engine.list("types_before_strings")
    if types and any(word.lower() in types for word in words):
        tokens = _without_types(tokens, types)
    if engine.sql_json_clauses and not words.isdisjoint(_CLAUSE_WORDS):
        tokens = _without_clauses(tokens)
    if engine.values_is_a_query and "VALUES" in words:
        tokens = _values_as_select(tokens)
    if engine.odbc_literals and "{" in words:
        tokens = _without_braces(tokens)
    if (engine.absolute_value and "@" in words) or (engine.factorial and "!" in words):
        tokens = list(_with_known_operators(tokens, engine))
    if engine.pivots and tokens and tokens[0].token_type is TokenType.PIVOT:
        tokens = _pivot_as_table(tokens)
    return tokens


def _without_braces(tokens: list[Token]) -> list[Token]:
    """Reduce `{d '2024-01-01'}` to its string, as the engine reads it as one."""
    kept: list[Token] = []
    position = 0
    while position < len(tokens):
        kinds = tuple(token.token_type for token in tokens[position : position + 4])
        if kinds == _ODBC and tokens[position + 1].text.lower() in _ODBC_WORDS:
            kept.append(tokens[position + 2])
            position += 4
        else:
            kept.append(tokens[position])
            position += 1
    return kept


def _with_known_operators(tokens: list[Token], engine: EngineRecord) -> Iterator[Token]:
    """Write `@ x` as `- x`, and `x!` as `x + 0`: signs that call nothing, in the same places."""
    before: Token | None = None
    for token in tokens:
        behind_a_value = before is not None and before.token_type in _OPERANDS
        if engine.absolute_value and token.token_type is TokenType.PARAMETER and not behind_a_value:
            yield _instead_of(token, TokenType.DASH, "-")
        elif engine.factorial and token.text == "!" and behind_a_value:
            yield _instead_of(token, TokenType.PLUS, "+")
            yield _instead_of(token, TokenType.NUMBER, "0")
        else:
            yield token
        before = token


def _pivot_as_table(tokens: list[Token]) -> list[Token]:
    """Write `PIVOT … ORDER BY …` as `SELECT * FROM (PIVOT …) ORDER BY …`, which the parser can read."""
    depth = 0
    for position, token in enumerate(tokens):
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth == 0 and token.token_type in _BEHIND_A_PIVOT:
            first, last = tokens[0], tokens[position - 1]
            opening = [(TokenType.SELECT, "SELECT"), (TokenType.STAR, "*"), (TokenType.FROM, "FROM")]
            begun = [_instead_of(first, kind, text) for kind, text in [*opening, (TokenType.L_PAREN, "(")]]
            ended = _instead_of(last, TokenType.R_PAREN, ")")
            return [*begun, *tokens[:position], ended, *tokens[position:]]
    return tokens


def _instead_of(token: Token, kind: TokenType, text: str) -> Token:
    """Make a token that stands where another stood."""
    return Token(kind, text, token.line, token.col, token.start, token.end, token.comments)


def _without_types(tokens: list[Token], types: frozenset[str]) -> list[Token]:
    """A type before a string says how the string is read, and calls nothing."""
    following = [token.token_type for token in tokens[1:]] + [None]
    return [
        token
        for token, behind in zip(tokens, following, strict=True)
        if behind is not TokenType.STRING or token.token_type in _QUOTED_TOKENS or token.text.lower() not in types
    ]


def _without_clauses(tokens: list[Token]) -> list[Token]:
    words = [_word(token) for token in tokens]
    kept: list[Token] = []
    position = 0
    while position < len(tokens):
        clause = next((c for c in _CLAUSES if tuple(words[position : position + len(c)]) == c), None)
        if clause:
            position += len(clause)
        else:
            kept.append(tokens[position])
            position += 1
    return kept


def _word(token: Token) -> str:
    """Tell how a clause names the token."""
    if token.token_type in {TokenType.STRING, TokenType.NUMBER}:
        return _LITERAL
    return "" if token.token_type is TokenType.IDENTIFIER else token.text.upper()


def _values_as_select(tokens: list[Token]) -> list[Token]:
    """MySQL's VALUES (1, 2), (3, 4) has the shape of SELECT (1, 2), (3, 4)."""
    changed = list(tokens)
    for position, token in enumerate(tokens):
        opens = position + 1 < len(tokens) and tokens[position + 1].token_type is TokenType.L_PAREN
        if token.token_type is TokenType.VALUES and opens:
            before = tokens[position - 1].token_type if position else TokenType.SEMICOLON
            if before in _BEFORE_VALUES:
                changed[position] = _instead_of(token, TokenType.SELECT, "SELECT")
    return changed
