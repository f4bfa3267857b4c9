"""Texts in a query that look like somebody's key or password: such a query is neither shown to a model nor kept.

By form and by the column that is compared; a secret that looks like any other word, in a column that does not say so,
is not recognised.
"""

import re
from collections.abc import Iterator

from sqlglot import exp

_FORMS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\b(?:sk|pk|rk)[-_](?:live|test|proj|ant)?[-_]?\w{16,}"
    r"|\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}|\bxox[abprs]-[\w-]{10,}|\bAIza[\w-]{30,}"
    r"|\bsqlc_\w{20,}|\beyJ[\w-]{10,}\.[\w-]{10,}\.|\$(?:2[aby]|argon2\w*|6|5)\$|://[^/\s:@]+:[^/\s@]+@"
    r"|\b(?i:bearer|basic)\s+[\w.~+/=-]{16,}|\b(?i:password|passwd|pwd|secret|api_?key|token)\s*[=:]\s*\S{6,}"
)
_COLUMN = re.compile(
    r"(?:^|_)(?:password|passwd|pwd|passphrase|secret|token|api_?key|private_?key|access_?key|credential|cvv|cvc|pin|"
    r"ssn|iban|card_?number)s?(?:_|$)",
    re.IGNORECASE,
)
_RANDOM = re.compile(r"[A-Za-z0-9+/_=-]{32,}")
_LEAST_KINDS = 3


def holds_secret(tree: exp.Expr) -> bool:
    """Tell whether a text of a query looks like a secret, or is compared with a column of secrets."""
    return any(_is_secret(literal) for literal in tree.find_all(exp.Literal)) or any(
        _FORMS.search(remark) for remark in _remarks(tree)
    )


def _is_secret(literal: exp.Literal) -> bool:
    text = str(literal.this)
    if literal.is_string and (_FORMS.search(text) or _is_random(text)):
        return True
    return bool(text) and any(_COLUMN.search(name) for name in _told_with(literal))


def _told_with(literal: exp.Literal) -> Iterator[str]:
    """Name the columns that a text is compared with or goes into a function with, and the name that it is given."""
    near = literal.parent
    while near is not None and not isinstance(near, exp.Query | exp.Connector | exp.If):
        if isinstance(near, exp.Predicate | exp.Func):
            yield from (column.name for column in near.find_all(exp.Column))
        if isinstance(near, exp.Alias):
            yield near.alias
        near = None if isinstance(near, exp.Predicate) else near.parent
    case = near.parent if isinstance(near, exp.If) else None
    if case is not None and isinstance(case.this, exp.Expr):  # CASE password WHEN 'it'
        yield from (column.name for column in case.this.find_all(exp.Column))


def _is_random(text: str) -> bool:
    """Tell whether a long text without a blank mixes small and capital letters and digits, as keys do and words do not.

    A hash or an identifier in hexadecimal has only one case of letters, and passes.
    """
    kinds = (str.islower, str.isupper, str.isdigit)
    return any(
        sum(any(kind(sign) for sign in part[0]) for kind in kinds) >= _LEAST_KINDS for part in _RANDOM.finditer(text)
    )


def _remarks(tree: exp.Expr) -> Iterator[str]:
    for node in tree.walk():
        yield from node.comments or ()
