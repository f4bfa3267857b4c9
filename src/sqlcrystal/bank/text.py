"""Questions and queries as the store compares and runs them."""

import re
import unicodedata

_MASKED_LITERAL = re.compile(r"'[^']*«n?\d+»[^']*'")


def runnable(sql: str) -> str:
    """A query whose values were taken out (`databases.masks`), so that it runs and finds nothing: each one is NULL."""
    return _MASKED_LITERAL.sub("NULL", sql)


def question_key(text: str) -> str:
    """What makes two wordings the same question: case, layout, Unicode form and the final mark do not count."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(folded.split()).rstrip(" ?.!;:")
