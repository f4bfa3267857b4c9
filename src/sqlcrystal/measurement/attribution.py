"""Attribution of a changed answer to cards: whose SQL elements it adopted, and which card fixed or broke it.

A verbatim match, as adoption counts it, is an upper bound, since an identifier may also come from the schema; read
fixes against breaks.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Protocol

from msgspec import Struct
from sqlglot import Token, TokenType

from sqlcrystal.databases.parsing import Unparsable, tokenize
from sqlcrystal.measurement.flips import Pair
from sqlcrystal.types import CardId

Window = Callable[[Pair], Sequence[str]]
"""The texts of the cards a pair's second answer was shown, best first."""

NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
OPERANDS = (*NAMES, TokenType.NUMBER, TokenType.STRING, TokenType.R_PAREN)
NUMBER = re.compile(r"-?[\d.]+")
TRIVIAL_NUMBER = re.compile(r"(0|1|100)(\.0*)?")
"""Numbers that come with counting, comparing and percentages, whatever a card shows; -1 is a mark that cards teach."""


class Traced(Struct, frozen=True, kw_only=True):
    """Flips of one kind that bring something new, and those of them that can be traced to a card."""

    flips: int
    with_new_elements: int
    traced: int

    @property
    def share(self) -> float | None:
        """Percent of all flips."""
        return 100 * self.traced / self.flips if self.flips else None

    @property
    def share_of_changed(self) -> float | None:
        """Percent of the flips that bring a new element."""
        return 100 * self.traced / self.with_new_elements if self.with_new_elements else None


class DeepWindow(Struct, frozen=True, kw_only=True):
    """The origin of the new elements in a wider window's fixes."""

    fixes: int
    deep: int
    shallow: int
    untraced: int


@lru_cache(maxsize=65_536)
def elements(sql: str | None, dialect: str = "sqlite") -> frozenset[str]:
    """Value literals, LIMIT clauses and identifiers of a query, without functions and whatever says nothing.

    Names of under three letters are aliases more often than columns, and every card has them; so has every text the
    empty string, and almost every query a 0 or a 1.
    """
    try:
        tokens = tokenize(sql or "", dialect)
    except Unparsable:
        return frozenset()
    constants: set[str] = set()
    for index, token in enumerate(tokens):
        after = tokens[index + 1] if index + 1 < len(tokens) else None
        if token.token_type is TokenType.LIMIT and after is not None:
            constants.add(f"limit {after.text}")
        elif token.token_type is TokenType.STRING and _tells(token.text):
            constants.add(token.text)
        elif token.token_type is TokenType.NUMBER:
            before = [earlier.token_type for earlier in tokens[max(0, index - 2) : index]]
            number = f"-{token.text}" if _is_sign(before) else token.text
            if before[-1:] != [TokenType.LIMIT] and not TRIVIAL_NUMBER.fullmatch(number):
                constants.add(number)
        elif token.token_type in NAMES and len(token.text) >= 3 and not _opens(after):
            constants.add(token.text.lower())
    return frozenset(constants)


def _tells(literal: str) -> bool:
    """Tell whether a literal holds more than one letter or digit: '', '%' and 'Y' stand in almost any text."""
    return sum(character.isalnum() for character in literal) > 1


def _is_sign(before: Sequence[TokenType]) -> bool:
    """Tell whether a dash before a number is its sign, which it is unless something stands there to subtract from."""
    return before[-1:] == [TokenType.DASH] and before[0] not in OPERANDS


def _opens(token: Token | None) -> bool:
    """Tell whether a token opens parentheses, which makes the name before it a function."""
    return token is not None and token.token_type is TokenType.L_PAREN


def new_elements(pair: Pair, dialect: str = "sqlite") -> frozenset[str]:
    """Tell what the second answer says that the first did not."""
    return elements(pair.after.sql, dialect) - elements(pair.before.sql, dialect)


def stands_in(element: str, text: str) -> bool:
    """Tell if an element stands in a text as a whole word, or a number as a whole value; an empty one does not."""
    if not element.strip():
        return False
    start, end = (r"(?<![\w.-])(?<!limit )", r"(?![\w]|\.\d)") if NUMBER.fullmatch(element) else (r"(?<!\w)", r"(?!\w)")
    return re.search(f"{start}{re.escape(element)}{end}", " ".join(text.split()), re.IGNORECASE) is not None


def trace(pairs: Iterable[Pair], window: Window, dialect: str = "sqlite") -> Traced:
    """Trace the new elements of some flips to their windows."""
    flips = changed = traced = 0
    for pair in pairs:
        flips += 1
        fresh = new_elements(pair, dialect)
        changed += bool(fresh)
        texts = window(pair)
        traced += any(stands_in(element, text) for element in fresh for text in texts)
    return Traced(flips=flips, with_new_elements=changed, traced=traced)


def trace_depth(pairs: Iterable[Pair], window: Window, *, narrow: int, dialect: str = "sqlite") -> DeepWindow:
    """Of the fixes a wider window brings, how many trace to a card only it shows, to one already shown, or to none."""
    fixes = deep = shallow = 0
    for pair in pairs:
        fixes += 1
        texts, fresh = window(pair), new_elements(pair, dialect)
        if any(stands_in(element, text) for element in fresh for text in texts[:narrow]):
            shallow += 1
        elif any(stands_in(element, text) for element in fresh for text in texts[narrow:]):
            deep += 1
    return DeepWindow(fixes=fixes, deep=deep, shallow=shallow, untraced=fixes - deep - shallow)


class LeftOut(Protocol):
    """An answer given without one card of its window; its `first_right` is the verdict with the whole window."""

    @property
    def seed(self) -> int: ...
    @property
    def question(self) -> str: ...
    @property
    def right(self) -> bool: ...
    @property
    def first_right(self) -> bool: ...
    @property
    def without(self) -> CardId: ...


class FlipCause(Struct, frozen=True, kw_only=True):
    """An answer that memory fixed or broke, and those cards of its window without which it would not have."""

    seed: int
    question: str
    verdict: str
    window: tuple[CardId, ...]
    causes: tuple[CardId, ...]
    """Cards whose absence alone takes the change back; none where only several together made it."""


class CardCause(Struct, frozen=True, kw_only=True):
    """Changes in whose window a card stood, and those of them that it caused."""

    in_fixes: int
    in_breaks: int
    fixed: int
    broke: int


def flip_causes(rows: Iterable[LeftOut]) -> tuple[FlipCause, ...]:
    """Gather the answers of each change: a fix that is gone without a card, or a break, is that card's."""
    grouped: defaultdict[tuple[int, str], list[LeftOut]] = defaultdict(list)
    for row in rows:
        grouped[row.seed, row.question].append(row)
    return tuple(
        FlipCause(
            seed=seed,
            question=question,
            verdict="fix" if answers[0].first_right else "break",
            window=tuple(answer.without for answer in answers),
            causes=tuple(answer.without for answer in answers if answer.right != answer.first_right),
        )
        for (seed, question), answers in grouped.items()
    )


def card_effects(causes: Iterable[FlipCause]) -> dict[CardId, CardCause]:
    """Count for every card the changes it stood beside, and those that it made."""
    beside: Counter[tuple[CardId, str]] = Counter()
    made: Counter[tuple[CardId, str]] = Counter()
    for flip in causes:
        beside.update((card, flip.verdict) for card in flip.window)
        made.update((card, flip.verdict) for card in flip.causes)
    return {
        card: CardCause(
            in_fixes=beside[card, "fix"],
            in_breaks=beside[card, "break"],
            fixed=made[card, "fix"],
            broke=made[card, "break"],
        )
        for card in dict.fromkeys(card for card, _ in beside)
    }


def harmful(rows: Iterable[LeftOut]) -> frozenset[CardId]:
    """Name the cards that broke more answers than they fixed."""
    return frozenset(card for card, effect in card_effects(flip_causes(rows)).items() if effect.broke > effect.fixed)
