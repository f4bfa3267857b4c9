"""What an engine has and sqlglot's grammar lacks: tokens it cuts in two are made whole, clauses are kept from it.

Only words that call nothing are taken out: the engine still gets them, the parser need not know them.
"""

import re

from sqlglot.tokenizer_core import Token, TokenType

from sqlcrystal.databases import vocabulary

_OPERATOR = re.compile(r"[-+*/<>=~!@#%^&|?]+")
_CUT = re.compile(r"[-+*/<>=~!@#%^&|?]{2}")
_QUOTED = frozenset({TokenType.STRING, TokenType.IDENTIFIER})
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


def whole(tokens: list[Token], sql: str, dialect: str) -> list[Token]:
    """The tokens with those in one that sqlglot cuts and the engine does not, such as `!~` and `<<=`.

    The parser takes them for another operator with two sides.
    """
    if dialect not in vocabulary.OPERATORS or not _CUT.search(sql):
        return tokens
    made: list[Token] = []
    position = 0
    while position < len(tokens):
        first, end = tokens[position], _end_of_operator(tokens, position, sql)
        text = sql[first.start : tokens[end].end + 1]
        if end > position and text in vocabulary.OPERATORS[dialect]:
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


def for_the_parser(tokens: list[Token], dialect: str) -> list[Token]:
    """The tokens as sqlglot's grammar of the dialect takes them."""
    if dialect == "postgres" and any(token.text.lower() in vocabulary.POSTGRES_TYPES for token in tokens):
        tokens = _without_types(tokens)
    if dialect in {"postgres", "mysql"} and any(token.text.upper() in _CLAUSE_WORDS for token in tokens):
        tokens = _without_clauses(tokens)
    if dialect == "mysql" and any(token.token_type is TokenType.VALUES for token in tokens):
        return _values_as_select(tokens)
    return tokens


def _without_types(tokens: list[Token]) -> list[Token]:
    """A type before a string says how the string is read, and calls nothing."""
    following = [token.token_type for token in tokens[1:]] + [None]
    return [
        token
        for token, behind in zip(tokens, following, strict=True)
        if behind is not TokenType.STRING
        or token.token_type in _QUOTED
        or token.text.lower() not in vocabulary.POSTGRES_TYPES
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
    """How a clause names the token."""
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
                changed[position] = Token(
                    TokenType.SELECT, "SELECT", token.line, token.col, token.start, token.end, token.comments
                )
    return changed
