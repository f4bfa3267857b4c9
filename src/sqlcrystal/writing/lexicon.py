"""The words by which a database is known: its tables, its columns, and the texts that its columns hold."""

import re
from collections.abc import Iterator

from msgspec import Struct
from sqlglot import exp

from sqlcrystal.databases.layout import layout_of
from sqlcrystal.databases.parsing import grammar
from sqlcrystal.protocols import Database
from sqlcrystal.types import Rows

VALUES_OF_A_COLUMN = 500
SECONDS_OF_A_LOOK = 2.0
SHORTEST_VALUE, LONGEST_VALUE = 3, 60


class Lexicon(Struct, frozen=True):
    """Words in lower case, and phrases as they are spelled: "the school name" does not mention `School Name`."""

    words: frozenset[str] = frozenset()
    phrases: frozenset[str] = frozenset()

    def mentioned(self, text: str) -> list[str]:
        """The words and phrases of a text that the database knows."""
        plain = " ".join(text.split())
        words = [word for word in re.findall(r"\w+", plain) if word.lower() in self.words]
        phrases = [
            phrase
            for phrase in self.phrases
            if phrase in plain and re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", plain)
        ]
        return words + phrases


def lexicon(database: Database) -> Lexicon:
    """Names and values of a database; of a column with very many values, the first ones."""
    layout = layout_of(database.schema(), database.dialect)
    names = {*layout, *(column for columns in layout.values() for column in columns)}
    values = {value for table in layout for column in layout[table] for value in _texts_of(database, table, column)}
    words = {*names, *(value.lower() for value in values)}
    return Lexicon(frozenset(filter(_is_word, words)), frozenset(value for value in values if not _is_word(value)))


def _is_word(text: str) -> bool:
    return re.fullmatch(r"\w+", text) is not None


def _texts_of(database: Database, table: str, column: str) -> Iterator[str]:
    """The texts in a column that are long enough to be told from plain English, and short enough to be quoted."""
    look = exp.select(exp.to_identifier(column)).distinct().from_(exp.to_identifier(table)).limit(VALUES_OF_A_COLUMN)
    result = database.execute(
        look.sql(grammar(database.dialect)), timeout=SECONDS_OF_A_LOOK, max_rows=VALUES_OF_A_COLUMN
    )
    for row in result.rows if isinstance(result, Rows) else ():
        if isinstance(row[0], str) and any(letter.isalpha() for letter in row[0]):
            value = " ".join(row[0].split())
            if SHORTEST_VALUE <= len(value) <= LONGEST_VALUE:
                yield value
