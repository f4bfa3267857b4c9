"""The words by which a database is known: its tables, its columns, and the texts that its columns hold."""

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct
from sqlglot import exp

from sqlcrystal.databases.layout import spelled_layout
from sqlcrystal.databases.parsing import grammar
from sqlcrystal.protocols import Database
from sqlcrystal.types import Rows

VALUES_OF_A_COLUMN = 500
SECONDS_OF_A_LOOK = 2.0
SHORTEST_WORD, LONGEST_VALUE = 3, 60
SENTENCE = re.compile(r"(?<=[.!?;:])\s+")


class Lexicon(Struct, frozen=True):
    """What a text may mention: words in any case, the rest as it is spelled."""

    words: frozenset[str] = frozenset()
    """In lower case: names, and values of three letters or more."""
    tables: frozenset[str] = frozenset()
    """In lower case: of a table the plural is a mention, too."""
    phrases: frozenset[str] = frozenset()
    """Names and values of several words: "the school name" does not mention `School Name`."""
    letters: frozenset[str] = frozenset()
    """Values of one capital letter, such as the Y of a flag; the first word of a sentence is none."""

    def mentioned(self, text: str) -> list[str]:
        """The words, phrases and letters of a text that the database knows, as it knows them."""
        plain = " ".join(text.split())
        spelled = re.findall(r"\w+", plain)
        lower = [word.lower() for word in spelled]
        later = [word for sentence in SENTENCE.split(plain) for word in re.findall(r"\w+", sentence)[1:]]
        return [
            *(word for word in lower if word in self.words),
            *(word.removesuffix("s") for word in lower if word.endswith("s") and word.removesuffix("s") in self.tables),
            *(word for word in later if word in self.letters),
            *(phrase for phrase in self.phrases if _stands_in(phrase, plain)),
        ]


def lexicon(database: Database) -> Lexicon:
    """Names and values of a database; of a column with very many values, the first ones."""
    layout = spelled_layout(database.schema(), database.dialect)
    names = {*layout, *(column for columns in layout.values() for column in columns)}
    values = {value for table in layout for column in layout[table] for value in _texts_of(database, table, column)}
    words = _lower([*names, *(value for value in values if len(value) >= SHORTEST_WORD)])
    return Lexicon(
        words=frozenset(filter(_is_word, words)),
        tables=frozenset(filter(_is_word, _lower(layout))),
        phrases=frozenset(text for text in {*names, *values} if not _is_word(text)),
        letters=frozenset(value for value in values if len(value) == 1 and value.isupper()),
    )


def _lower(texts: Iterable[str]) -> Iterator[str]:
    return (text.lower() for text in texts)


def _is_word(text: str) -> bool:
    return re.fullmatch(r"\w+", text) is not None


def _stands_in(phrase: str, text: str) -> bool:
    return phrase in text and re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text) is not None


def _texts_of(database: Database, table: str, column: str) -> Iterator[str]:
    """The texts in a column that are short enough to be quoted."""
    # Quoted as they are spelled: a table may be called `order`, a column `School Name`.
    wanted, source = (exp.to_identifier(name, quoted=True) for name in (column, table))
    look = exp.select(wanted).distinct().from_(source).limit(VALUES_OF_A_COLUMN)
    result = database.execute(
        look.sql(grammar(database.dialect)), timeout=SECONDS_OF_A_LOOK, max_rows=VALUES_OF_A_COLUMN
    )
    for row in result.rows if isinstance(result, Rows) else ():
        if isinstance(row[0], str) and any(letter.isalpha() for letter in row[0]):
            value = " ".join(row[0].split())
            if len(value) <= LONGEST_VALUE:
                yield value
