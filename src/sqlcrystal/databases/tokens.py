"""Clauses that an engine has and sqlglot's grammar lacks, taken out of the tokens before they are parsed.

Only words that call nothing are taken out: the engine still gets them, the parser need not know them.
"""

from sqlglot.tokenizer_core import Token, TokenType

_BEFORE_VALUES = frozenset(
    {TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT, TokenType.ALL, TokenType.L_PAREN, TokenType.SEMICOLON}
)
# SQL/JSON's wrapper and quotes clauses, which stand behind a path.
_CLAUSES = (
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


def for_the_parser(tokens: list[Token], dialect: str) -> list[Token]:
    """The tokens as sqlglot's grammar of the dialect takes them."""
    if dialect == "postgres" and any(token.text.upper() in {"WRAPPER", "QUOTES"} for token in tokens):
        return _without_clauses(tokens)
    if dialect == "mysql" and any(token.token_type is TokenType.VALUES for token in tokens):
        return _values_as_select(tokens)
    return tokens


def _without_clauses(tokens: list[Token]) -> list[Token]:
    words = [
        "" if token.token_type in {TokenType.STRING, TokenType.IDENTIFIER} else token.text.upper() for token in tokens
    ]
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
