"""The one way to read SQL that a model or a user wrote: within limits, and with one kind of failure.

sqlglot is compiled, so nothing can interrupt it and a stack it overflows ends the process. What it might choke on, by
the tokens, is therefore parsed by a process that can be ended first.
"""

import contextlib
import logging
import re
import signal
import sys
import threading
from functools import cache

import msgspec
from msgspec import Struct
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

from sqlcrystal.databases.child import Children, Gone, Late, read, write
from sqlcrystal.databases.engines import engine_of
from sqlcrystal.types import Failure, FailureKind

MAX_CHARACTERS = 200_000
MAX_SCHEMA = 5_000_000
MAX_DEPTH = 100
MAX_TOKENS = 50_000
# Beyond these a child parses first; of 9,238 real statements two are.
EASY_DEPTH = 7
EASY_BARE_JOINS = 10
EASY_TOKENS = 1000
EASY_CHARACTERS = 4000
REHEARSAL_SECONDS = 20.0
"""By the clock, for a busy machine; the child's own limit is half a second of work."""
WORK_SECONDS = 0.5
WORKER_STACK = 2**20
"""Less than any thread of the parent has left: what overflows it ends the worker and nobody else."""
_CLOSING_OF = {
    TokenType.L_PAREN: TokenType.R_PAREN,
    TokenType.L_BRACKET: TokenType.R_BRACKET,
    TokenType.L_BRACE: TokenType.R_BRACE,
    TokenType.CASE: TokenType.END,
}
_CLOSERS: frozenset[TokenType] = frozenset(_CLOSING_OF.values())
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
    if _may_be_hard(sql):
        _refuse_hard(tokens, sql, dialect)
    parser = _readers.of(grammar(dialect))[1]
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
    tokenizer = _readers.of(grammar(dialect))[0]
    try:
        return tokenizer.tokenize(sql)
    except SqlglotError as error:
        raise _syntax(" ".join(_ESCAPES.sub("", str(error)).split())) from None
    except Exception as error:
        raise _syntax(f"the tokenizer fails on it: {error}") from None


def grammar(dialect: str) -> str:
    """Name the sqlglot dialect that parses this dialect's SQL."""
    return engine_of(dialect).grammar


@cache
def language(dialect: str) -> Dialect:
    """Tell what writes a tree in this dialect: by its name, sqlglot would make one for every statement."""
    return Dialect.get_or_raise(grammar(dialect))


def written(tree: exp.Expr, dialect: str, *, pretty: bool = False, comments: bool = True) -> str:
    """The tree as SQL; a writer goes as deep as its tree, and what was read flat may be too deep to write."""
    try:
        return tree.sql(language(dialect), pretty=pretty, comments=comments)
    except RecursionError:
        raise _refused("the statement is nested too deeply") from None
    except Exception as error:  # sqlglot's writers raise errors of many types on trees that they did not foresee
        raise _syntax(f"the statement cannot be written: {error}") from None


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


def _may_be_hard(sql: str) -> bool:
    """Tell whether the text is long or has brackets and joins enough to be hard to parse, which most texts have not."""
    if len(sql) > EASY_CHARACTERS:
        return True
    lowered = sql.lower()
    opened = sum(map(lowered.count, ("(", "[", "{", "case")))
    return opened > EASY_DEPTH or lowered.count("join") + lowered.count("apply") > EASY_BARE_JOINS


def _refuse_hard(tokens: list[Token], sql: str, dialect: str) -> None:
    """Refuse what would overflow the parser's stack; let a process that can be ended try what may take it too long."""
    shape = _measure(tokens)
    if shape.depth > MAX_DEPTH:
        raise _refused("the statement is nested too deeply")
    if shape.tokens > MAX_TOKENS:
        raise _refused(f"the statement has more than {MAX_TOKENS} words")
    if shape.depth > EASY_DEPTH or shape.bare_joins > EASY_BARE_JOINS or shape.tokens > EASY_TOKENS:
        _rehearse(sql, dialect)


def _rehearse(sql: str, dialect: str) -> None:
    """Parse in a child that the system ends after half a second of work: backtracking makes some texts exponential."""
    child = _rehearsal.take()
    try:
        child.ask(msgspec.msgpack.encode((grammar(dialect), sql)), REHEARSAL_SECONDS)
    except (Late, Gone):
        raise _refused("the statement is too much for the parser: nested too deeply, or too many joins") from None
    finally:
        _rehearsal.give_back(child)


def _rehearsed(sql: str, name: str) -> None:
    """Parse, whatever comes of it."""
    with contextlib.suppress(Exception):
        _readers.of(name)[1].parse(_readers.of(name)[0].tokenize(sql), sql)


class _Shape(Struct):
    """The deepest nesting, the most joins without a condition and the most tokens of a statement."""

    depth: int = 0
    bare_joins: int = 0
    tokens: int = 0


def _measure(tokens: list[Token]) -> _Shape:
    worst = _Shape()
    openers: list[TokenType] = []
    open_joins = [False]
    bare_joins = count = 0
    for token in tokens:
        kind = token.token_type
        count += 1
        if kind in _CLOSING_OF:
            openers.append(kind)
            open_joins.append(False)
        elif kind in _CLOSERS and openers:
            while openers and _CLOSING_OF[openers[-1]] is not kind and kind is not TokenType.END:
                openers.pop()
                bare_joins += open_joins.pop()
            if openers and _CLOSING_OF[openers[-1]] is kind:
                openers.pop()
                bare_joins += open_joins.pop()
        elif kind in _JOINS:
            bare_joins += open_joins[-1]
            open_joins[-1] = True
        elif kind in _JOIN_CONDITION:
            open_joins[-1] = False
        elif kind is TokenType.SEMICOLON:
            openers, open_joins, bare_joins, count = [], [False], 0, 0
        worst.depth = max(worst.depth, len(openers))
        worst.bare_joins = max(worst.bare_joins, bare_joins)
        worst.tokens = max(worst.tokens, count)
    return worst


_rehearsal = Children("sqlcrystal.databases.parsing", max_idle=1)


def _refused(message: str) -> Unparsable:
    return Unparsable(Failure(FailureKind.REFUSED, message))


def _syntax(message: str) -> Unparsable:
    return Unparsable(Failure(FailureKind.SYNTAX, message[:500]))


def _work() -> None:
    """Parse what comes and say that it went well; the system ends this process when it works for too long."""
    replies, requests = sys.stdout.buffer, sys.stdin.buffer
    threading.stack_size(WORKER_STACK)
    write(replies, b"ready")
    while message := read(requests):
        name, sql = msgspec.msgpack.decode(message, type=tuple[str, str])
        if hasattr(signal, "setitimer"):  # Windows has none; there the parent ends it, by the clock
            signal.setitimer(signal.ITIMER_PROF, WORK_SECONDS)
        thread = threading.Thread(target=_rehearsed, args=(sql, name))
        thread.start()
        thread.join()
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_PROF, 0)
        write(replies, b"parsed")


if __name__ == "__main__":
    _work()
