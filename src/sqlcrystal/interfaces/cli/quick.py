"""Reads the arguments of `sqlcrystal score` and `ask` without the command-line library, which takes long to load.

It takes only what it is sure of: an option by its whole name with a value that converts. For everything else (help, a
mistake, `--name=value`) it says None, and the library reads the arguments and finds the words for what is wrong.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

VALUES: dict[str, Callable[[str], object]] = {
    "--benchmark": str,
    "--data": Path,
    "--rule": str,
    "--out": Path,
    "--jobs": int,
    "--timeout": float,
}
LISTS = {"--databases", "--database"}
FLAGS = {"--skip-missing": "skip_missing", "--json": "as_json"}

ASK_VALUES = {f"--{name}": name.replace("-", "_") for name in ("db", "name", "model", "api-key-env", "by", "store")}
ASK_FLAGS: dict[str, tuple[str, bool]] = {
    "--memory": ("memory", True),
    "--no-memory": ("memory", False),
    "--replay": ("replay", True),
    "--trace": ("trace", True),
    "--json": ("json", True),
}


def quick_ask(arguments: Sequence[str]) -> dict[str, Any] | None:
    """The arguments of `answer_question`, or None when the library has to read them."""
    settings: dict[str, Any] = {}
    waiting = list(reversed(arguments))
    while waiting:
        word = waiting.pop()
        if word in ASK_FLAGS:
            name, value = ASK_FLAGS[word]
            settings[name] = value
        elif word in ASK_VALUES and waiting and not waiting[-1].startswith("-"):
            settings[ASK_VALUES[word]] = waiting.pop()
        elif not word.startswith("-") and "question" not in settings:
            settings["question"] = word
        else:
            return None
    return settings if "question" in settings else None


def quick_score(arguments: Sequence[str]) -> dict[str, Any] | None:
    """The arguments of `score_files`, or None when the library has to read them."""
    settings: dict[str, Any] = {"predictions": []}
    waiting = list(reversed(arguments))
    while waiting:
        word = waiting.pop()
        if word in FLAGS:
            settings[FLAGS[word]] = True
        elif not word.startswith("-"):
            settings["predictions"].append(Path(word))
        elif not waiting or waiting[-1].startswith("-") or not _take(settings, word, waiting.pop()):
            return None
    if not settings["predictions"] or "benchmark" not in settings:
        return None
    return settings if settings.get("jobs", 1) >= 1 and settings.get("timeout", 1.0) >= 0.001 else None


def _take(settings: dict[str, Any], option: str, value: str) -> bool:
    """Note the value of an option that is known and whose value converts."""
    name = option.removeprefix("--")
    if option in LISTS:
        settings.setdefault(name, []).append(value)
        return True
    if option not in VALUES:
        return False
    try:
        settings[name] = VALUES[option](value)
    except ValueError:
        return False
    return True
