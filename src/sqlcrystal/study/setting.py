"""The settings a study measures in, kept apart: what each asks, with which memory, and what follows the answer."""

from typing import Literal

from msgspec import Struct


class Setting(Struct, frozen=True, kw_only=True):
    """One setting: a row of the table below."""

    name: str
    asks: Literal["everything", "collection", "collected", "held-out", "banked"]
    """Which questions: all, those to learn from, the same once the bank is full, those held out, or the banked ones."""
    reworded: bool = False
    """Asked in other words, once for each paraphrase that the benchmark has of it."""
    memory: Literal["none", "others", "own"]
    """No cards; only cards that came from other questions; or the question's own card as well."""
    repairs: Literal["", "oracle", "engine"] = ""
    """Who says that repair is due and done; what held-out repair finds is never stored."""
    serves: bool = False
    """Answered and repaired by the code of the service, by its source and not the arm's."""
    repeats: bool = False
    """Asked anew as often as the study's `reruns` say, under numbers of their own."""
    in_context: bool = False
    """Read after the turns before it, where it is one of a dialogue; elsewhere each question is asked as it stands."""
    leaves_out: bool = False
    """Asked without each card of its window in turn, where memory changed the verdict."""


SETTINGS = {
    setting.name: setting
    for setting in (
        Setting(name="attempt", asks="everything", memory="none"),
        Setting(name="collection", asks="collection", memory="others", in_context=True),
        Setting(name="transfer", asks="held-out", memory="others"),
        Setting(name="dialogue", asks="held-out", memory="others", in_context=True),
        Setting(name="repair", asks="held-out", memory="others", repairs="oracle"),
        Setting(name="engine-repair", asks="held-out", memory="others", repairs="engine"),
        Setting(name="served", asks="held-out", memory="others", repairs="engine", serves=True),
        Setting(name="again", asks="held-out", memory="others", repeats=True),
        Setting(name="cause", asks="held-out", memory="others", leaves_out=True),
        Setting(name="collection-cause", asks="collected", memory="others", leaves_out=True),
        Setting(name="replay", asks="banked", memory="own"),
        Setting(name="retention", asks="banked", memory="others"),
        Setting(name="rerun", asks="banked", memory="none", repeats=True),
        Setting(name="paraphrase", asks="banked", memory="own", reworded=True),
        Setting(name="paraphrase-others", asks="banked", memory="others", reworded=True),
        Setting(name="paraphrase-none", asks="banked", memory="none", reworded=True),
    )
}
CHOICES = tuple(name for name, setting in SETTINGS.items() if setting.asks in ("held-out", "collected", "banked"))
"""What an arm of a study file may name; first attempts and collections follow from these."""
