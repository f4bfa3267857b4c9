"""The spellings of one value: whether a text holds it, in any case, layout, accent, quoting or code.

It is better to forget too much than too little: Jose is found for José, and a name for the same name with a hyphen.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation

_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"\d[\d,_]*(?:\.\d+)?(?:e[-+]?\d{1,3}(?!\d))?", re.IGNORECASE)
_HEX = re.compile(r"(?:x'|0x)([0-9a-f]+)", re.IGNORECASE)
_CODES = re.compile(r"cha?r\s{0,9}\(([\d,\s]+)\)", re.IGNORECASE)
_ESCAPED = re.compile(r"\\u([0-9a-f]{4})", re.IGNORECASE)
_LARGEST_CODE = 0x10FFFF


def holds_value(value: str) -> Callable[[str | float], bool]:
    """Tell whether a text, or a number of a row, is or holds the value."""
    number = _number(value)
    words = _words(value)
    plain = value.casefold()

    def in_words(text: str) -> bool:
        return words in _words(text) if words else plain in text.casefold()

    def held(leaf: str | float) -> bool:
        if not isinstance(leaf, str):
            return number is not None and _number(str(leaf)) == number
        if number is None:
            return any(in_words(text) for text in (leaf, *_decoded(leaf)))
        if any(_number(found) == number for found in _NUMBER.findall(leaf)):
            return True
        return any(int(digits[:40], 16) == number for digits in _HEX.findall(leaf)) or any(
            value in text for text in _decoded(leaf)
        )

    return held


def _words(text: str) -> str:
    """The words of a text alone: without case, accents, quotes, wildcards and layout."""
    plain = "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))
    return " ".join(_WORD.findall(plain.casefold()))


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip().replace(",", "").replace("_", ""))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _decoded(text: str) -> Iterator[str]:
    """Tell what stands in a text as hexadecimal bytes, as numbers of characters, or as escapes."""
    for digits in _HEX.findall(text):
        yield bytes.fromhex(digits[: len(digits) // 2 * 2]).decode(errors="replace")
    codes = [int(code) for found in _CODES.findall(text) for code in re.findall(r"\d{1,7}", found)]
    if codes:
        yield "".join(chr(code) for code in codes if code <= _LARGEST_CODE)
    if "\\u" in text:
        yield _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
