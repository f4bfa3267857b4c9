"""The one way to read SQL that a model or a user wrote: within limits, and with one kind of failure.

sqlglot is compiled, so nothing can interrupt it and a stack it overflows ends the process. What it would choke on is
therefore refused by its tokens, before it is parsed.
"""

import logging
import re
import threading
from collections.abc import Set

from msgspec import Struct
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

from sqlcrystal.types import Failure, FailureKind

MAX_CHARACTERS = 200_000
MAX_SCHEMA = 5_000_000
MAX_DEPTH = 100
MAX_BARE_JOINS = 10
MAX_TYPE_CALLS = 5
GRAMMARS = {"postgresql": "postgres", "mariadb": "mysql"}
_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END})
_JOINS = frozenset({TokenType.JOIN, TokenType.STRAIGHT_JOIN, TokenType.APPLY})
_JOIN_CONDITION = frozenset({TokenType.ON, TokenType.USING})
_ESCAPES = re.compile(r"\x1b\[\d*m")
logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it warns of every statement the guard is about to refuse


class Unparsable(Exception):
    """Text that has no syntax tree; the failure says whether it is wrong or only too much."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def parse(sql: str, dialect: str) -> exp.Expr:
    """The tree of the first statement."""
    statements = parse_all(sql, dialect)
    if not statements or statements[0] is None:
        raise Unparsable(Failure(FailureKind.SYNTAX, "no statement"))
    return statements[0]


def parse_all(sql: str, dialect: str, *, max_characters: int = MAX_CHARACTERS) -> list[exp.Expr | None]:
    """The trees of every statement, None where nothing stands between two semicolons."""
    return parse_tokens(tokenize(sql, dialect, max_characters=max_characters), sql, dialect)


def parse_tokens(tokens: list[Token], sql: str, dialect: str) -> list[exp.Expr | None]:
    """The trees of the statements that the tokens of a text make."""
    parser = _readers.of(grammar(dialect))[1]
    if _may_exceed(sql) and (excess := _excess(tokens, parser.TYPE_TOKENS)):
        raise _refused(excess)
    try:
        return parser.parse(tokens, sql)
    except SqlglotError as error:
        raise _syntax(" ".join(_ESCAPES.sub("", str(error)).split())) from None
    except RecursionError:
        raise _refused("the statement is nested too deeply") from None
    except Exception as error:  # sqlglot raises TypeError, ValueError and others on text it did not foresee
        raise _syntax(f"the parser fails on it: {error}") from None


def tokenize(sql: str, dialect: str, *, max_characters: int = MAX_CHARACTERS) -> list[Token]:
    """The tokens of a text of bounded length."""
    if len(sql) > max_characters:
        raise _refused(f"the statement is longer than {max_characters} characters")
    try:
        return _readers.of(grammar(dialect))[0].tokenize(sql)
    except SqlglotError as error:
        raise _syntax(" ".join(_ESCAPES.sub("", str(error)).split())) from None
    except Exception as error:
        raise _syntax(f"the tokenizer fails on it: {error}") from None


def grammar(dialect: str) -> str:
    """The sqlglot dialect that parses this dialect's SQL."""
    return GRAMMARS.get(dialect.lower(), dialect.lower())


class _Readers(threading.local):
    """A thread's tokenizer and parser of each dialect: to make them takes a fifth of the time to read a statement."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[Tokenizer, Parser]] = {}

    def of(self, dialect: str) -> tuple[Tokenizer, Parser]:
        """The pair; both start anew with every text."""
        if dialect not in self._made:
            language = Dialect.get_or_raise(dialect)
            self._made[dialect] = (language.tokenizer(), language.parser())
        return self._made[dialect]


_readers = _Readers()


def _may_exceed(sql: str) -> bool:
    """Whether the text holds enough brackets or joins for `_excess` to find something, which most texts do not."""
    lowered = sql.lower()
    opened = sum(map(lowered.count, ("(", "[", "{", "case")))
    return opened > MAX_TYPE_CALLS or lowered.count("join") + lowered.count("apply") > MAX_BARE_JOINS


def _excess(tokens: list[Token], types: Set[TokenType]) -> str | None:
    """Nesting that would overflow the parser's stack, and the two shapes on which its backtracking is exponential.

    Those are joins without a condition, and names of types used as functions, such as DATE(…), inside one another.
    """
    nested = [_Nested()]
    bare_joins = type_calls = 0
    before: TokenType | None = None
    for token in tokens:
        kind = token.token_type
        if kind in _OPENING:
            nested.append(_Nested(before in types))
            type_calls += nested[-1].is_type
        elif kind in _CLOSING and len(nested) > 1:
            closed = nested.pop()
            type_calls -= closed.is_type
            bare_joins += closed.open_join
        elif kind in _JOINS:
            bare_joins += nested[-1].open_join
            nested[-1].open_join = True
        elif kind in _JOIN_CONDITION:
            nested[-1].open_join = False
        elif kind is TokenType.SEMICOLON and len(nested) == 1:
            nested[0].open_join, bare_joins = False, 0
        if len(nested) > MAX_DEPTH or type_calls > MAX_TYPE_CALLS or bare_joins > MAX_BARE_JOINS:
            return "the statement is nested too deeply, or joins too often without ON"
        before = kind
    return None


class _Nested(Struct):
    """One open parenthesis: does it belong to a type's name, and is its last JOIN still without a condition?"""

    is_type: bool = False
    open_join: bool = False


def _refused(message: str) -> Unparsable:
    return Unparsable(Failure(FailureKind.REFUSED, message))


def _syntax(message: str) -> Unparsable:
    return Unparsable(Failure(FailureKind.SYNTAX, message[:500]))
