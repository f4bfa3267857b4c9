"""Questions and queries as the store compares and runs them."""

import re
import unicodedata

_MASKED_NUMBER = re.compile(r"'«n\d+»'")
_MASKED_COUNT = re.compile(r"«n\d+»")
_MASKED_LITERAL = re.compile(r"'[^'«]*«\d+»[^'«]*'")


def runnable(sql: str) -> str:
    """A query whose values were taken out (`databases.masks`), so that it runs: texts are NULL, numbers are 1."""
    return _MASKED_LITERAL.sub("NULL", _MASKED_COUNT.sub("1", _MASKED_NUMBER.sub("1", sql)))


def question_key(text: str) -> str:
    """What makes two wordings the same question: case, layout, Unicode form and the final mark do not count."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(folded.split()).rstrip(" ?.!;:")
