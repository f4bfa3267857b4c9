"""Names explain themselves: one record for one idea, and no two empty words in a row."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "sqlcrystal"
EMPTY = {"found", "given", "it", "made", "one", "thing"}
"""Words that say nothing of what they name: two of them, as in `found.found`, say nothing twice."""


def nodes() -> Iterator[tuple[str, ast.AST]]:
    """Every node of every module, with where it stands."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            yield f"{path.relative_to(SOURCE)}:{getattr(node, 'lineno', 0)}", node


def test_no_class_name_stands_twice() -> None:
    places = defaultdict(list)
    for place, node in nodes():
        if isinstance(node, ast.ClassDef):
            places[node.name].append(place)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_no_name_says_nothing_of_nothing() -> None:
    repeated = [
        f"{place} {node.value.id}.{node.attr}"
        for place, node in nodes()
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if node.attr in EMPTY and node.value.id in EMPTY
    ]
    assert repeated == []
