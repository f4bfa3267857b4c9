"""Which parts of a query some word of its question asks for: a filter or join that none asks for is worth a look."""

import re

from sqlglot import exp

from sqlcrystal.telling.names import meet, stems, words
from sqlcrystal.telling.scope import Mention

# Words of questions that ask for a comparison, a test or its turn without naming the column.
_ASKING: dict[type[exp.Expr], str] = {
    exp.Is: r"no|not|without|missing|unknown|never|yet|still|any|null|empty|none|un\w+|currently|have|has|had",
    exp.GT: r"more|over|above|greater|larger|older|higher|after|exceed\w*|at least|positive|\w+er|least|since|beyond",
    exp.GTE: r"more|over|at least|or more|minimum|since|from|after|older|\w+er|least|multiple|several",
    exp.LT: r"less|fewer|under|below|smaller|younger|lower|before|\w+er|negative|up to|shortfall",
    exp.LTE: r"most|at most|less|up to|no more|before|until|under|maximum",
    exp.Between: r"between|from|during|range|within|quarter|in",
}


def is_asked_for(mention: Mention, query: exp.Expr, question: str) -> bool:
    """Tell whether some word of a question asks for a filter or a join, as far as their spelling shows."""
    asked = stems(question)
    if isinstance(mention.node, exp.Join):
        return _is_used(mention, query) or meet(stems(mention.sources[0].noun), asked)
    return _is_filter_asked_for(mention.node, asked, question)


def _is_filter_asked_for(test: exp.Expr, asked: frozenset[str], question: str) -> bool:
    if test.find(exp.Subquery, exp.Select):  # what stands inside is looked at by itself
        return True
    named = " ".join([*(words(column.name) for column in test.find_all(exp.Column)), *_values(test)])
    if meet(stems(named), asked):
        return True
    spoken = question.lower()
    if any(value.lower() in spoken for value in _values(test) if len(value) > 1):
        return True
    if test.find(exp.AggFunc) or any(_abbreviates(value, word) for value in _values(test) for word in spoken.split()):
        return True
    return any(
        re.search(rf"\b(?:{said})\b", spoken) for kind, said in _ASKING.items() if isinstance(test.unnest(), kind)
    )


def _values(test: exp.Expr) -> list[str]:
    return [str(value.this).strip("%").strip() for value in test.find_all(exp.Literal)]


def _abbreviates(code: str, word: str) -> bool:
    """Tell whether a code may stand for a word: its letters in their order, the first one first."""
    letters = iter(word)
    short = code.lower()
    return 0 < len(short) < 5 and short.isalpha() and word[:1] == short[:1] and all(c in letters for c in short)


def _is_used(mention: Mention, query: exp.Expr) -> bool:
    """Tell whether anything but its own condition reads a joined table, or needs it to reach another."""
    source, join = mention.sources[0], mention.node
    own = {id(column) for column in join.find_all(exp.Column)}
    select = join.parent or query
    for column in select.find_all(exp.Column):
        if id(column) in own:
            continue
        if not column.table or column.table.lower() == source.alias.lower():
            return True
    return not source.table or (select.find(exp.Star) is not None and select.find(exp.Count) is None)
