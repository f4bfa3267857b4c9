"""A follow-up as a question that stands alone, rewritten by the model from the questions before it and their SQL.

The question that stands alone is answered, retrieves cards and becomes one; the words as they were asked never do.
Where the model's words cannot be taken, what was asked is put after the question that it leans on.
"""

import re
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from sqlcrystal.protocols import LanguageModel
from sqlcrystal.solving.solver import GREEDY, QUERY, THINKING
from sqlcrystal.types import Call, Message, Question, Sampling

MOST_TURNS = 5
"""So many earlier questions are shown; older ones have had their say in those."""
LONGEST_REPLY = 160
"""Tokens of a rewritten question."""
LONGEST_TURN = 2_000
"""Characters of an earlier query that are shown."""
READING = replace(GREEDY, max_tokens=LONGEST_REPLY)
NEW_TOPIC, SAME = "NEW TOPIC", "SAME"

FOLLOW_SYSTEM = f"""\
You read the last message of a conversation about a database and write it as ONE question that can be understood \
without the conversation.
Rules:
- Keep what the earlier questions ask that still holds, and put in what the last message changes or adds.
- Keep every name, number and quoted value of the last message as it is written.
- If the last message has nothing to do with the earlier questions, write {NEW_TOPIC}.
- Write the question on one line, without SQL and without explanation.
Examples:
After "Show revenue by country in 2011", the message "and in 2012?" is: Show revenue by country in 2012
After "What are all the airlines?", the message "How many are there?" is: How many airlines are there?"""
FOLLOW_CLOSING = "Write the last message as one question that stands alone."

NOTE_SYSTEM = f"""\
Somebody asked a question about a database, got an SQL query for it, and wrote a note on it. Say which question they \
want answered.
Rules:
- If the note only says what is wrong with the query, or what the data means, the question is the same: write {SAME}.
- If the note asks for something else than the question does (another period, other rows, other columns, another \
order), write the question that they want answered, so that it can be understood without the note.
- Keep every name, number and quoted value of the note as it is written.
- Write {SAME}, or the question on one line, without SQL and without explanation.
Examples:
"Show revenue by month in 2024" with the note "only January to March please" is: Show revenue by month from January to \
March 2024
"How many hardware items are there?" with the note "hardware is coded HW" is: {SAME}"""
NOTE_CLOSING = f"Write the question that they want answered, or {SAME}."


class PastTurn(Struct, frozen=True):
    """An earlier question of a conversation, standing alone, and the query that answered it, if one did."""

    question: str
    sql: str | None = None


class Reading(Struct, frozen=True, kw_only=True):
    """A question as it is answered, whether it belongs to what came before, and the calls that it took to read it."""

    question: Question
    follows: bool = False
    calls: tuple[Call, ...] = ()


class Rewriter:
    """Rewrites follow-ups and noted questions with one short call each."""

    def __init__(self, model: LanguageModel, *, sampling: Sampling = READING) -> None:
        """Ask this model; a longer reply than a question's is cut."""
        self._model = model
        self._sampling = replace(sampling, max_tokens=min(LONGEST_REPLY, sampling.max_tokens))

    def follow(self, question: Question, turns: Sequence[PastTurn]) -> Reading:
        """Read a question after earlier ones: as one that stands alone, or as a new topic in its own words."""
        sections = [*_conversation(turns[-MOST_TURNS:]), f"[Last message]\n{question.text}", FOLLOW_CLOSING]
        call = self._ask(FOLLOW_SYSTEM, sections)
        said = _line(call.completion.text)
        if _is(said, NEW_TOPIC) and not leans(question.text):
            return Reading(question=question, calls=(call,))
        kept = bool(said) and not _is(said, NEW_TOPIC) and keeps(question.text, said, known=turns)
        if kept and not (_same(said, question.text) and leans(question.text)):
            text = said
        else:
            text = question.text if stands_alone(question.text) else f"{turns[-1].question} {question.text}"
        read = replace(question, text=text, evidence=_hint(turns[-1]) or question.evidence)
        return Reading(question=read, follows=True, calls=(call,))

    def noted(self, question: Question, sql: str | None, note: str) -> Reading:
        """Read a question with a note on its answer: `follows` where the note makes it another question."""
        sections = [*_conversation([PastTurn(question.text, sql)]), f"[Note]\n{note.strip()}", NOTE_CLOSING]
        call = self._ask(NOTE_SYSTEM, sections)
        said = _line(call.completion.text)
        if _is(said, SAME) or _same(said, question.text):
            return Reading(question=question, calls=(call,))
        if not said or not keeps(note, said, known=(PastTurn(question.text),)):
            return replace(unrewritten(question, sql, note), calls=(call,))
        read = replace(question, text=said, evidence=_hint(PastTurn(question.text, sql)))
        return Reading(question=read, follows=True, calls=(call,))

    def _ask(self, system: str, sections: Sequence[str]) -> Call:
        messages = (Message("system", system), Message("user", "\n".join(sections)))
        completion = self._model.chat(messages, sampling=self._sampling)
        return Call(purpose="read", messages=messages, sampling=self._sampling, completion=completion)


def unrewritten(question: Question, sql: str | None, note: str) -> Reading:
    """Read a noted question without a model: a note that goes on with the question is put behind it."""
    if not _OPENING.match(note):
        return Reading(question=question)
    text = f"{question.text.rstrip()} ({note.strip()})"
    return Reading(question=replace(question, text=text, evidence=_hint(PastTurn(question.text, sql))), follows=True)


def _conversation(turns: Sequence[PastTurn]) -> list[str]:
    lines = []
    for number, turn in enumerate(turns, 1):
        lines.append(f"Question {number}: {_flat(turn.question)}")
        if turn.sql:
            lines.append(f"SQL {number}: {_flat(turn.sql)[:LONGEST_TURN]}")
    return ["[Conversation]", *lines]


def _hint(turn: PastTurn) -> str:
    """Tell the solver which query the question goes on from; it stands where a benchmark's evidence does."""
    if not turn.sql:
        return ""
    return f"It goes on from “{_flat(turn.question)}”, answered by {_flat(turn.sql)[:LONGEST_TURN]}"


# ── the model's words ────────────────────────────────────────────────────────────────────────────────────────────────

_LABEL = re.compile(
    r"^[\W_]*(?:the\s+)?(?:(?:rewritten|standalone|last|full)\s+)?(?:question|message|answer)[\s\d]*:\s*", re.IGNORECASE
)
_QUOTES = "\"'`“”‘’*"
LONGEST_LINE = 1_000


def _line(reply: str) -> str:
    """Find the first line of a reply that is a question: no label, quotes or emphasis around it, and no SQL."""
    for line in THINKING.sub("", reply).splitlines():
        plain = _LABEL.sub("", line.strip()).strip()
        plain = plain.strip(_QUOTES).strip() if plain[:1] in _QUOTES else plain
        if plain:
            unfit = plain.startswith("```") or "```" in line or QUERY.match(plain) or len(plain) > LONGEST_LINE
            return "" if unfit else plain
    return ""


def _is(said: str, word: str) -> bool:
    return re.match(rf"{word}\b", said, re.IGNORECASE) is not None


def _same(one: str, other: str) -> bool:
    return _flat(one).casefold().rstrip(" ?.!") == _flat(other).casefold().rstrip(" ?.!")


def _flat(text: str) -> str:
    return " ".join(text.split())


# ── the words of a follow-up ─────────────────────────────────────────────────────────────────────────────────────────

_OPENING = re.compile(
    r"\W*(?:(?:please|no|yes|i meant)\W+)?(?:and|but|or|also|only|just|now|then|instead|again|same|what about|how about"
    r"|without|except|(?:of|among|from) (?:these|those|them|this|that)"
    r"|(?:for|in|by|per|since|until|after|before)\b(?! (?:which|what|each|every|how|all)))\b",
    re.IGNORECASE,
)
_POINTING = frozenset({"them", "those", "these", "they", "ones"})
_POINTING_WORDS = """
it its their theirs he him his she her hers this that one other others previous above
"""
_PRONOUNS = frozenset(_POINTING_WORDS.split())
_COMMON_WORDS = """
a about again all also an and any are as at be been but by can could did display do does each every find for from get
give had has have here how i in instead is it its just list many me meant more most much my need no not now of on one
ones only or order our please return same see show some sort tell than that the their them then there these they this
those to us want was we were what when where which who whom whose why with without would you
"""
_COMMON = frozenset(_COMMON_WORDS.split())
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_VALUE = re.compile(r"\"[^\"]+\"|“[^”]+”|‘[^’]+’|(?<!\w)'[^']+'(?!\w)|\d+(?:[.,:/-]\d+)*")
SHORT, WHOLE, STEM = 4, 6, 4


def leans(text: str) -> bool:
    """Tell whether a message plainly goes on with what came before: it opens so, points at something, or is short."""
    words = _words(text)
    return len(words) < SHORT or _OPENING.match(text) is not None or not _POINTING.isdisjoint(words)


def stands_alone(text: str) -> bool:
    """Tell whether a message reads like a whole question: long enough, and pointing at nothing."""
    words = _words(text)
    return len(words) >= WHOLE and not leans(text) and _PRONOUNS.isdisjoint(words)


def keeps(asked: str, said: str, *, known: Sequence[PastTurn] = ()) -> bool:
    """Tell whether a rewritten question holds what is new in the words asked: each value and name, half of the rest."""
    heard = {_stem(word) for turn in known for word in _words(turn.question)}
    held = {_stem(word) for word in _words(said)}
    values = [value.strip("\"'“”‘’") for value in _VALUE.findall(asked)]
    if not all(_flat(value).casefold() in _flat(said).casefold() for value in values):
        return False
    first, *rest = _WORD.findall(asked) or [""]
    names = {_stem(word.casefold()) for word in rest if word[:1].isupper()}
    if not names <= held:
        return False
    new = {_stem(word) for word in (first.casefold(), *map(str.casefold, rest)) if word not in _COMMON} - heard
    return 2 * len(new & held) >= len(new)


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def _stem(word: str) -> str:
    """Keep as much of a word as its forms share: sort, sorted and sorting are one."""
    return word if word.isdigit() else word.removesuffix("s")[:STEM]
