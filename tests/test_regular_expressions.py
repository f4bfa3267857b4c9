"""Every regular expression of the package answers its worst input in time: no text of a user's freezes the service."""

import ast
import importlib
import itertools
import pkgutil
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest

import sqlcrystal
from cardbox import card
from sqlcrystal.databases import guard, reading
from sqlcrystal.databases.engines import ENGINES
from sqlcrystal.interfaces.web import text
from sqlcrystal.serving import replay
from sqlcrystal.serving.replay import exchange

parser: Any = importlib.import_module("re._parser")  # the parser of `re`, which has no types
LENGTH = 1_000
SECONDS = 1.0
"""Of work for one text: a linear expression takes a thousandth of it, one that tries all divisions never ends."""


def modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(sqlcrystal.__path__, "sqlcrystal."):
        if found.name.endswith("__main__"):  # run, not imported
            continue
        try:
            yield importlib.import_module(found.name)
        except ImportError:  # an extra that is not installed here
            continue


def held(value: object, depth: int = 3) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield value
    elif depth and isinstance(value, (list, tuple, set, frozenset)):
        for inner in value:
            yield from held(inner, depth - 1)
    elif depth and isinstance(value, dict):
        yield from held(tuple(value.values()), depth)
    elif depth and isinstance(value, type) and value.__module__.startswith("sqlcrystal"):
        yield from held(tuple(vars(value).values()), depth - 1)


def written(module: ModuleType) -> Iterator[re.Pattern[str]]:
    """Those that stand in a call within a function, such as `re.sub("…", …)`."""
    for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re")), args=[ast.Constant(value=str(text)), *_]):
                flags = {name for part in ast.walk(node) if isinstance(part, ast.Attribute) for name in [part.attr]}
                yield re.compile(text, sum(getattr(re, name) for name in flags & {"DOTALL", "IGNORECASE", "MULTILINE"}))


def made() -> Iterator[re.Pattern[str]]:
    """Those that are put together: for each engine, and around words of a user's."""
    for engine in ENGINES:
        yield reading._gap(engine.line_remarks)
        yield reading._piece(engine.quoted, engine.digits_begin_names)
        yield from guard._inspections(engine.inspections)
    yield text._pattern(["Ada", "a.a"])
    yield re.compile(replay._whole("a b a"), re.IGNORECASE)
    yield re.compile(replay._whole("1.50"), re.IGNORECASE)


def patterns() -> dict[str, re.Pattern[str]]:
    """Those that modules and classes keep, that stand in functions or are made there, each once, by where they are."""
    found: dict[tuple[str, int], tuple[str, re.Pattern[str]]] = {}
    places = [
        (f"{module.__name__}.{name}", held(value)) for module in modules() for name, value in vars(module).items()
    ]
    places += [(f"{module.__name__}()", written(module)) for module in modules()]
    for place, some in [*places, ("made", made())]:
        for pattern in some:
            key = (str(pattern.pattern), pattern.flags)
            if key not in found:
                found[key] = (f"{place}.{len(found)}", pattern)
    return dict(found.values())


def characters(parsed: Any) -> Iterator[str]:
    """A character of each literal, set and category that an expression speaks of."""
    for operation, argument in parsed:
        name = str(operation)
        if name in {"LITERAL", "NOT_LITERAL"}:
            yield chr(argument)
        elif name == "IN":
            for kind, value in argument:
                if str(kind) == "RANGE":
                    yield chr(value[0])
                elif str(kind) == "LITERAL":
                    yield chr(value)
                elif str(kind) == "CATEGORY":
                    yield {"DIGIT": "1", "SPACE": " "}.get(str(value).rpartition("_")[2], "a")
                elif str(kind) == "NEGATE":
                    yield from "ab"
        else:
            for inner in argument if isinstance(argument, (list, tuple)) else [argument]:
                if isinstance(inner, parser.SubPattern):
                    yield from characters(inner)
                elif isinstance(inner, list):
                    for branch in inner:
                        yield from characters(branch)


def worst_texts(pattern: re.Pattern[str]) -> Iterator[str]:
    """Long runs of everything the expression speaks of, alone and in pairs, that end in what it does not."""
    spoken = list(dict.fromkeys([*characters(parser.parse(str(pattern.pattern), pattern.flags)), "a", "1", " "]))[:8]
    runs = [*spoken, *(first + second for first, second in itertools.permutations(spoken[:4], 2))]
    for run in runs:
        text = (run * LENGTH)[:LENGTH]
        for start in ("", spoken[0]):
            yield start + text + "\x00"


def too_late(_: int, __: FrameType | None) -> None:
    raise TimeoutError


PATTERNS = patterns()


@pytest.mark.parametrize("name", PATTERNS)
def test_no_text_keeps_a_regular_expression_busy(name: str) -> None:
    pattern = PATTERNS[name]
    before = signal.signal(signal.SIGVTALRM, too_late)
    try:
        for worst in worst_texts(pattern):
            signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
            try:
                pattern.fullmatch(worst)
                pattern.sub("", worst)
            except TimeoutError:
                pytest.fail(f"{pattern.pattern!r} takes more than {SECONDS} s for {worst[:20]!r} … {worst[-3:]!r}")
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def test_expressions_within_functions_are_among_them() -> None:
    known = {str(pattern.pattern) for pattern in PATTERNS.values()}
    assert {r"[\d@]", r"(?<=//)[^/?#]*@", reading._gap(ENGINES[0].line_remarks).pattern} <= known


def test_a_freezing_expression_would_be_found() -> None:
    frozen = re.compile(r"(?:a+)+b")
    signal.signal(signal.SIGVTALRM, too_late)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.2)
    with pytest.raises(TimeoutError):
        any(frozen.fullmatch(worst) for worst in worst_texts(frozen))


def test_a_question_with_many_values_is_compared_in_time_that_grows_with_its_length_alone() -> None:
    values = [f"v{number}" for number in range(10)]
    asked = "Which of " + " or ".join(values) + " is it, and why?"
    known = card(1, text=asked, sql="SELECT 1 WHERE x IN (" + ", ".join(f"'{value}'" for value in values) + ")")
    signal.signal(signal.SIGVTALRM, too_late)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    assert exchange(known, "Which of " + "a or " * 120 + "b is it, and how", "sqlite") is None
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
