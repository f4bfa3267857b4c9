"""A scripted model that plays Quarry: right or wrong by a hash, better with cards, so that every arm has work."""

import hashlib
import re
import time
from collections.abc import Sequence

from sqlcrystal.benchmarks.cases import Case
from sqlcrystal.benchmarks.catalogue import load_benchmark
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.types import Completion, Message, Sampling

QUESTION = re.compile(
    r"\[Question\]\n(.*?)\n(?:Hint: |Write the|Use the|Think step|Propose|\[|The previous)", re.DOTALL
)


def draw(*parts: object) -> int:
    """A number from 0 to 99 that depends on the parts alone."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:4], "big") % 100


class Player(ScriptedModel):
    """Knows gold, as no real model does; `delay` slows every reply."""

    def __init__(self, *, delay: float = 0.0, name: str = "player") -> None:
        super().__init__(self.reply, name=name)
        self.cases: dict[str, Case] = {
            words.strip(): case
            for case in load_benchmark("quarry").cases
            for words in (case.question.text, *case.paraphrases)
        }
        self.delay = delay
        self.chosen = ""

    def chat(self, messages: Sequence[Message], *, sampling: Sampling = Sampling()) -> Completion:
        """The scripted reply, after a while."""
        time.sleep(self.delay)
        return super().chat(messages, sampling=sampling)

    def reply(self, messages: Sequence[Message], sampling: Sampling) -> str:
        """Right with a chance that cards, probes and samples change."""
        system, user = messages[0].content, messages[1].content
        if system.startswith("You write a compact"):
            return '{"trigger": "", "applicability": "", "negative_guard": "", "lesson": "look at the values first"}'
        if "debugging" in system or "Explore first" in system:
            return "```sql\nSELECT 1\n```"
        asked = self.question_in(user)
        case = self.cases[asked]
        cards = user.count("\nQ: ")
        own = f"Q: {' '.join(asked.split())}\n" in user
        if own and "Similar solved" in user:
            chance = 95
        elif "correcting" in system:
            chance = 40
        else:
            chance = 50 + (4 * cards if "Similar solved" in user else 0)
        lot = draw(case.question.id, "base") if not sampling.index and "correcting" not in system else draw(messages)
        right = (draw(messages, sampling.index) if sampling.temperature else lot) < chance
        return f"```sql\n{case.sql if right else case.wrong[0]}\n```"

    def question_in(self, prompt: str) -> str:
        """The question in a prompt."""
        found = QUESTION.search(prompt)
        assert found, prompt[-300:]
        return found[1].strip()

    def clinic_and_telecom(self) -> list[Case]:
        """The cases of the first edition over the two databases that tests use."""
        return list(load_benchmark("quarry-1").only(["clinic", "telecom"]).cases)
