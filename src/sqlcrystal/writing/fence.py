"""The consistency fence: a text that names a table, column or value absent from the episode is not kept.

What counts as a name: a word by which the database knows a table, a column or a value, however plain; anything in
quotes; words with an underscore, a dot, a digit or a capital inside; words in capitals that are not SQL's own; and
numbers of two digits or more. A plain word that the database does not know is no name: the fence keeps out what looks
like a fact, not every falsehood.
"""

import re
from functools import cache

from sqlcrystal.types import Episode, Rows
from sqlcrystal.writing.lexicon import Lexicon

QUOTED = re.compile(r"(?<!\w)'([^']+)'(?!\w)|\"([^\"]+)\"|`([^`]+)`")
NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+|\w+")
ALLOWED = frozenset({"SQL", "ID", "IDS", "DB", "OK", "NOT", "AND", "OR", "ONLY", "ISO", "UTC"})


def fence(text: str, episode: Episode, known: Lexicon = Lexicon()) -> str:
    """The text, or nothing when it names what the episode never held; `known` is the database's lexicon."""
    held = " ".join(vocabulary(episode).lower().split())
    words = frozenset(re.findall(r"\w+", held))
    return text if all(_is_in_episode(name, held, words) for name in [*names(text), *known.mentioned(text)]) else ""


def names(text: str) -> list[str]:
    """What a text calls by name."""
    quoted = [next(filter(None, match.groups())) for match in QUOTED.finditer(text)]
    bare = QUOTED.sub(" ", text)
    return [*quoted, *(word for word in NAME.findall(bare) if _is_name(word))]


def vocabulary(episode: Episode) -> str:
    """All that the episode holds: the question, both queries, every candidate, and what the probes showed."""
    question = episode.question
    texts = [question.text, question.evidence, episode.attempt.sql or "", episode.sql]
    for spent in episode.rounds:
        texts.append(spent.sql or "")
        for execution in [spent.execution, *(probe.execution for probe in spent.probes)]:
            if isinstance(execution, Rows):
                texts.extend(execution.columns)
                texts.extend(str(cell) for row in execution.rows for cell in row)
        texts.extend(probe.sql for probe in spent.probes)
    return "\n".join(texts)


def _is_in_episode(name: str, held: str, words: frozenset[str]) -> bool:
    """Whether the episode holds the name as it stands, or every part of a dotted one."""
    plain = " ".join(name.lower().split())
    if re.search(rf"(?<!\w){re.escape(plain)}(?!\w)", held):
        return True
    return "." in plain and all(part in words for part in plain.split("."))


def _is_name(word: str) -> bool:
    if word.upper() in ALLOWED or word.upper() in _sql_words():
        return False
    if word.isdigit():
        return len(word) > 1
    inner = word[1:]
    return (
        "_" in word
        or "." in word
        or any(character.isdigit() for character in word)
        or any(character.isupper() for character in inner)
    )


@cache
def _sql_words() -> frozenset[str]:
    """SQL's own words: keywords and function names."""
    from sqlglot import exp
    from sqlglot.tokens import Tokenizer

    keywords = {part for keyword in Tokenizer.KEYWORDS for part in keyword.split()}
    return frozenset(keywords | set(exp.FUNCTION_BY_NAME))
