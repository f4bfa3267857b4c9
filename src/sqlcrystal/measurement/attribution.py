"""Cards at work: the elements and changed answers that each is traced to, how broadly a bank is used, and leakage.

A verbatim match, as adoption counts it, is an upper bound, since an identifier may also come from the schema; read
fixes against breaks.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from statistics import median
from typing import Protocol

import numpy as np
from msgspec import Struct
from sqlglot import Token, TokenType, exp

from sqlcrystal.databases.parsing import Unparsable, parse, tokenize
from sqlcrystal.measurement.cost import Share
from sqlcrystal.measurement.flips import Answered, Key, Pair
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


class Paired(Protocol):
    """A card: whose question it shows, and with which SQL."""

    @property
    def seed(self) -> int: ...
    @property
    def database(self) -> str: ...
    @property
    def question_id(self) -> str: ...
    @property
    def sql(self) -> str: ...


def unmoved(aligned: Iterable[Paired], permuted: Iterable[Paired]) -> Share:
    """Cards that keep their own SQL although the bank was permuted, such as the only card of a database."""
    own = {(card.seed, card.database, card.question_id): card.sql for card in aligned}
    shared = [card for card in permuted if (card.seed, card.database, card.question_id) in own]
    unchanged = sum(card.sql == own[card.seed, card.database, card.question_id] for card in shared)
    return Share(unchanged, len(shared))


def same_window(pairs: Sequence[Pair]) -> Share:
    """Pairs in which both arms show the same cards, so that nothing but their order can tell the answers apart."""
    return Share(sum(set(pair.before.cards) == set(pair.after.cards) for pair in pairs), len(pairs))


LARGELY = 0.5
"""The share of equal windows from which a comparison of retrievers finds little because it compares little."""


class Windows(Struct, frozen=True, kw_only=True):
    """The windows of two arms for the same questions."""

    same: Share
    """Pairs in which both show the same cards."""
    forced: Share
    """Pairs in which there was no choice: the bank of their database holds no more cards than either window takes."""
    available: tuple[int, float, int]
    """The numbers of cards that there were to choose from: fewest, median, most."""
    most_shown: tuple[int, int]
    """The most cards that either arm showed at once."""

    @property
    def by_construction(self) -> str:
        """Tell whether a null result was built in, in words; empty where the windows differ enough to tell."""
        if self.same.part == self.same.whole:
            return "null by construction: both arms show the same cards"
        if self.same.part >= LARGELY * self.same.whole:
            return "largely null by construction: most windows are the same"
        return ""


def windows(pairs: Sequence[Pair], available: Sequence[int], *, widths: tuple[int, int]) -> Windows | None:
    """Compare what two arms showed, given how many cards each question had to choose from; None without pairs."""
    if not pairs:
        return None
    return Windows(
        same=same_window(pairs),
        forced=Share(sum(cards <= min(widths) for cards in available), len(pairs)),
        available=(min(available), median(available), max(available)),
        most_shown=(max(len(pair.before.cards) for pair in pairs), max(len(pair.after.cards) for pair in pairs)),
    )


# ── how a bank is used ───────────────────────────────────────────────────────────────────────────────────────────────


class BankUse(Struct, frozen=True, kw_only=True):
    """The use of one seed's bank, shares in percent; None where there was nothing to share."""

    cards: int
    slots: int
    in_fix_windows: float | None
    top_decile: float | None
    """Share of appearances in fix windows that the most frequent tenth of the cards has, interpolated between cards."""
    gini: float | None
    never_retrieved: float | None


def card_use(*, bank: Collection[CardId], answers: Iterable[Answered], fixed: Iterable[Pair]) -> BankUse:
    """Count how often each card of a bank was shown, and how often to a question that memory fixed."""
    shown = Counter(card for answer in answers for card in answer.cards)
    credit = Counter(card for pair in fixed for card in pair.after.cards)
    shows, credits = [shown[card] for card in bank], sorted((credit[card] for card in bank), reverse=True)
    size = len(bank)
    return BankUse(
        cards=size,
        slots=sum(shows),
        in_fix_windows=100 * sum(count > 0 for count in credits) / size if size else None,
        top_decile=100 * _top_tenth(credits) / sum(credits) if sum(credits) else None,
        gini=gini(shows),
        never_retrieved=100 * sum(count == 0 for count in shows) / size if size else None,
    )


def _top_tenth(ordered: Sequence[int]) -> float:
    """Tell what the first tenth of the cards has; of a card that is in it by a part, that part."""
    whole, part = divmod(len(ordered), 10)
    return sum(ordered[:whole]) + (part / 10 * ordered[whole] if part else 0.0)


def gini(counts: Sequence[int]) -> float | None:
    """Gini's coefficient of inequality: 0 when all are equal, near 1 when one has everything."""
    total = sum(counts)
    if not total:
        return None
    ordered, size = np.sort(np.asarray(counts, dtype=float)), len(counts)
    return float(2 * np.sum(np.arange(1, size + 1) * ordered) / (size * total) - (size + 1) / size)


PARAPHRASE_JACCARD = 0.7
"""Questions that share at least this share of their words count as paraphrases."""


class Banked(Paired, Protocol):
    """A card as the audit sees it."""

    @property
    def question(self) -> str: ...


class LeakageAudit(Struct, frozen=True, kw_only=True):
    """Held-out pairs that have a twin in the bank, and the lift without them (percentage points)."""

    n: int
    shared_ids: int
    with_text: int
    """Pairs whose question text is known; without text no paraphrase can be found."""
    paraphrases: int
    with_sql: int
    """Pairs with a known right SQL; a template is taken from any right answer, so that memory's fixes are covered."""
    same_template: int
    lift_pp: float
    lift_without_paraphrases_pp: float | None
    lift_without_templates_pp: float | None
    lift_without_both_pp: float | None
    threshold: float


def audit(
    *,
    pairs: Sequence[Pair],
    cards: Iterable[Banked],
    questions: Mapping[str, str],
    right_sql: Mapping[str, Collection[str]],
    dialect: str = "sqlite",
    threshold: float = PARAPHRASE_JACCARD,
) -> LeakageAudit:
    """Compare every held-out question with the cards of its own database and seed."""
    bank: defaultdict[tuple[int, str], list[Banked]] = defaultdict(list)
    for card in cards:
        bank[card.seed, card.database].append(card)
    ids: set[Key] = set()
    alike: set[Key] = set()
    templated: set[Key] = set()
    for pair in pairs:
        near, question = bank[pair.after.seed, pair.after.database], pair.after.question
        if any(card.question_id == question for card in near):
            ids.add(pair.key)
        words = _words(questions.get(question, ""))
        if words and any(jaccard(words, _words(card.question)) >= threshold for card in near):
            alike.add(pair.key)
        shapes = {template(sql, dialect) for sql in right_sql.get(question, ())} - {None}
        if shapes and any(template(card.sql, dialect) in shapes for card in near):
            templated.add(pair.key)
    return LeakageAudit(
        n=len(pairs),
        shared_ids=len(ids),
        with_text=sum(pair.after.question in questions for pair in pairs),
        paraphrases=len(alike),
        with_sql=sum(bool(right_sql.get(pair.after.question)) for pair in pairs),
        same_template=len(templated),
        lift_pp=_lift(pairs, set()) or 0.0,
        lift_without_paraphrases_pp=_lift(pairs, alike),
        lift_without_templates_pp=_lift(pairs, templated),
        lift_without_both_pp=_lift(pairs, alike | templated),
        threshold=threshold,
    )


def _lift(pairs: Sequence[Pair], without: set[Key]) -> float | None:
    kept = [pair for pair in pairs if pair.key not in without]
    return 100 * sum(pair.after.right - pair.before.right for pair in kept) / len(kept) if kept else None


@lru_cache(maxsize=65_536)
def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower()))


def jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    """Shared words over all words."""
    return len(left & right) / len(left | right) if left or right else 0.0


@lru_cache(maxsize=65_536)
def template(sql: str, dialect: str = "sqlite") -> str | None:
    """A query with every literal replaced by a placeholder and names in lower case; None when it cannot be parsed."""
    try:
        tree = parse(sql, dialect)
    except Unparsable:
        return None
    for literal in list(tree.find_all(exp.Literal)):
        literal.replace(exp.Placeholder())
    for name in tree.find_all(exp.Identifier):
        name.set("this", name.this.lower())
        name.set("quoted", False)
    return tree.sql(dialect=dialect)
