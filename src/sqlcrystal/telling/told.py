"""What is said of a query beside it: the sentence, and the parts of it that no word of the question asks for."""

from msgspec import Struct
from sqlglot import exp

from sqlcrystal.databases.parsing import Unparsable, parse_all
from sqlcrystal.telling.asked import is_asked_for
from sqlcrystal.telling.query import sentence
from sqlcrystal.telling.scope import Known, Untold

LONGEST = 1500
"""A sentence beyond this many characters helps nobody to judge."""


class Told(Struct, frozen=True):
    """A query in words; no words where no rule speaks of something in it."""

    words: str = ""
    unasked: tuple[str, ...] = ()
    """Filters and joins that no word of the question asks for, each as it stands in the words."""


def tell(sql: str | None, *, dialect: str, question: str = "", schema: str = "") -> Told:
    """Tell a query in one sentence; of a question, mark what it does not ask for."""
    try:
        trees = parse_all(sql or "", dialect)
        if len(trees) != 1 or not isinstance(trees[0], exp.Query):
            return Told()
        words, mentions = sentence(trees[0], Known.of(schema, dialect))
    except (Unparsable, Untold, RecursionError):
        return Told()
    if len(words) > LONGEST:
        return Told()
    marked = [each.words for each in mentions if question and not is_asked_for(each, trees[0], question)]
    return Told(words, tuple(dict.fromkeys(marked)))
