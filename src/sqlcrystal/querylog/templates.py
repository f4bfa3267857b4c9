"""Templates into SQL: dbt's ref, source and config, and Metabase's variables; anything more is not guessed."""

import re
from collections.abc import Mapping
from typing import Any

_REMARK = re.compile(r"\{#.*?#\}", re.DOTALL)
_CONFIG = re.compile(r"\{\{-?\s*config\s*\([^{}]*\)\s*-?\}\}")
_TEXT = r"""\s*(?:'([\w.$ -]+)'|"([\w.$ -]+)")\s*"""
_REF = re.compile(rf"\{{\{{-?\s*ref\s*\((?:{_TEXT},)?{_TEXT}(?:,\s*v(?:ersion)?\s*=\s*\w+\s*)?\)\s*-?\}}\}}")
_SOURCE = re.compile(rf"\{{\{{-?\s*source\s*\({_TEXT},{_TEXT}\)\s*-?\}}\}}")
_JINJA = re.compile(r"\{\{|\{%|\{#")
_ALIAS = re.compile(r"""\{\{-?\s*config\s*\([^{}]*?\balias\s*=\s*['"](\w+)['"]""")
_OPTIONAL = re.compile(r"\[\[(?:(?!\[\[|\]\]).)*\]\]", re.DOTALL)
_VARIABLE = re.compile(r"\{\{\s*([\w -]+?)\s*\}\}")
_QUOTED = re.compile(r"'(?:[^']|'')*'")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def is_template(text: str) -> bool:
    """Tell whether SQL holds a template's braces outside its texts: a parser may take them for something else."""
    return _JINJA.search(_QUOTED.sub("''", text)) is not None


def dbt_alias(text: str) -> str:
    """Give the name of the relation that a model is built as, where its config says another than the file's."""
    found = _ALIAS.search(text)
    return found[1] if found else ""


def from_dbt(text: str, aliases: Mapping[str, str], tables: Mapping[tuple[str, str], str]) -> str | None:
    """Resolve ref, source and config of a model; None where it holds more Jinja than that.

    A model stands for its relation (`aliases`), a source for the table that the project declares (`tables`).
    """
    plain = _CONFIG.sub("", _REMARK.sub("", text))

    def relation(found: re.Match[str]) -> str:
        name = next(group for group in (found[3], found[4]) if group)
        return aliases.get(name, name)

    def table(found: re.Match[str]) -> str:
        source, name = found[1] or found[2], found[3] or found[4]
        return tables.get((source, name), name)

    resolved = _SOURCE.sub(table, _REF.sub(relation, plain))
    return None if _JINJA.search(resolved) else resolved


def from_metabase(text: str, tags: Mapping[str, Any]) -> str | None:
    """Fill the variables of a native question: defaults where it has them, else parameters; optional parts go."""
    plain = _OPTIONAL.sub("", text)
    strange: list[str] = []

    def value(found: re.Match[str]) -> str:
        tag = tags.get(found[1])
        kind = tag.get("type", "text") if isinstance(tag, Mapping) else "text"
        if kind in ("dimension", "card", "snippet") or found[1].startswith(("snippet:", "#")):
            strange.append(found[1])  # a filter on a field, another question or a shared piece, which are not here
            return ""
        given = tag.get("default") if isinstance(tag, Mapping) else None
        if isinstance(given, list):
            given = given[0] if len(given) == 1 else None
        if given is None:
            return ":" + re.sub(r"\W", "_", found[1])
        if kind == "number" and _NUMBER.fullmatch(str(given)):
            return str(given)
        return "'" + str(given).replace("'", "''") + "'"

    filled = _VARIABLE.sub(value, plain)
    return None if strange or _JINJA.search(filled) else filled
