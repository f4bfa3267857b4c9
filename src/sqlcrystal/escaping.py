"""Text that leaves for a terminal, a spreadsheet or a page: it is shown there, never obeyed."""

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_LINK = re.compile(r"\](?=[(\[:])")
_ADDRESS = re.compile(r"(?i)\b(https?|ftp|mailto|javascript|data):")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[-+]?(?:\d[\d,]*+(?:\.\d*+)?+|\.\d++)(?:[eE][-+]?\d++)?+\s?%?")


def visible(text: str) -> str:
    """Write control characters, and those that turn the direction of writing, as escapes; tabs and line ends stay."""
    return _CONTROL.sub(lambda match: ascii(match[0])[1:-1], text)


def csv_cell(text: str) -> str:
    """Write a cell that a spreadsheet takes for text, unless it is a number: a formula gets a quotation mark."""
    if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text


def without_tags(text: str) -> str:
    """Write text for Markdown in which nothing is an HTML tag, a link or an image; a mere "less than" stays."""
    return _ADDRESS.sub(r"\1\\:", _LINK.sub(r"\\]", _TAG.sub("&lt;", text)))


def fenced(sql: str) -> str:
    """Write a Markdown block of SQL that ends where it should even if the SQL holds marks of its own."""
    marks = max((len(run) for run in re.findall(r"`+", sql)), default=0)
    fence = "`" * max(3, marks + 1)
    return f"{fence}sql\n{sql}\n{fence}"
