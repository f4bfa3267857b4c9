"""A model that holds a conversation about the shop, for every test of follow-ups: it reads, then writes SQL."""

from collections.abc import Sequence

from shop import RIGHT, fenced
from sqlcrystal.solving.following import FOLLOW_SYSTEM, NOTE_SYSTEM
from sqlcrystal.types import Message, Sampling

FIRST = "How many hardware items are there?"
THEN = "and food?"
READ = "How many food items are there?"
FOOD = "SELECT COUNT(*) FROM item WHERE kind = 'FD'"
OTHER_TOPIC = "What is the price of every item in the shop?"
PRICES = "SELECT name, price FROM item"
ONLY_DEAR = "only those over 100 please"
READ_DEAR = "How many hardware items over 100 are there?"
DEAR = "SELECT COUNT(*) FROM item WHERE kind = 'HW' AND price > 100"

READINGS = {THEN: READ, OTHER_TOPIC: "NEW TOPIC", ONLY_DEAR: READ_DEAR, "hardware is HW": "SAME"}
ANSWERS = {FIRST: RIGHT, READ: FOOD, OTHER_TOPIC: PRICES, READ_DEAR: DEAR}


def conversing(messages: Sequence[Message], _: Sampling) -> str:
    """Read what is known to go on, and answer what stands alone; a follow-up that was not read has no answer."""
    system, asked = messages[0].content, messages[-1].content
    if system in (FOLLOW_SYSTEM, NOTE_SYSTEM):
        said = asked.rpartition("]\n")[2].rpartition("\n")[0]
        return READINGS.get(said, "")
    question = asked.rpartition("[Question]\n")[2].splitlines()[0]
    return fenced(ANSWERS.get(question, "SELECT 'no such question'"))


def readings(prompts: Sequence[Sequence[Message]]) -> list[str]:
    """Give the user messages of every call that read a follow-up or a note."""
    return [prompt[1].content for prompt in prompts if prompt[0].content in (FOLLOW_SYSTEM, NOTE_SYSTEM)]
