"""Calls that end a MariaDB server: it reads paths in XML and geometries by recursion, without a look at its stack.

300 times `not(` in a path, or 1,000 geometry collections inside one another, end the server with all its sessions,
whoever asks. So a path must stand there as a short string, and a geometry must come from a table or from what stands
in the statement, nested no deeper than people write; text that the statement makes at length is refused. SFORMAT takes
the memory for a number of any width at once, and ends the server where there is not so much: its format must stand
there as a string, without numbers of four digits and without widths that come from elsewhere.
"""

import re
from collections.abc import Iterator

from sqlglot import exp

from sqlcrystal.databases.engines import MYSQL

MAX_PATH = 200
_WIDE = re.compile(r"\d{4}|\{[^{}]*\{")
MAX_DEPTH = 30
MAX_BINARY = 2000
_WRITTEN = (exp.Literal, exp.HexString, exp.BitString)
_PASSED_THROUGH = (exp.Paren, exp.Concat, exp.ConcatWs, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Round, exp.Abs)
_KEEPING_SIZE = (
    *(exp.Connector, exp.Case, exp.If, exp.Coalesce, exp.Cast, exp.Exists, exp.Round, exp.Abs),
    *(exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Count, exp.RowNumber),
)
_PATHS, _GEOMETRIES = MYSQL.list("paths"), MYSQL.list("geometries")
_PREFIXES = tuple(MYSQL.list("geometry_prefixes"))


def ends_the_server(tree: exp.Expr, sql: str) -> str | None:
    """The name of the first such call, if there is one."""
    for call in tree.find_all(exp.Func):
        name = _name(call, sql)
        if name == "sformat":
            form = next(_parts(call), None)
            if form is None or not form.is_string or _WIDE.search(form.name):
                return name
        elif name in _PATHS:
            path = [*_parts(call), None, None][1]
            if path is None or not path.is_string or len(path.name) > MAX_PATH:
                return name
        elif _reads_geometry(name) and not all(_is_modest(part, tree, sql) for part in _parts(call)):
            return name
    return None


def _name(call: exp.Func, sql: str) -> str:
    """The name as it was written: sqlglot knows some functions by another, and gives CAST(x …) the name of its x."""
    start, end = call.meta.get("start"), call.meta.get("end")
    if start is not None and end is not None:
        return sql[start : end + 1].strip("`").lower()
    return call.name.lower() if isinstance(call, exp.Anonymous) else call.sql_name().lower()


def _reads_geometry(name: str) -> bool:
    return name in _GEOMETRIES or name.startswith(_PREFIXES)


def _gives_geometry(name: str) -> bool:
    """A point is made of two numbers, which nobody parses."""
    return name == "point" or _reads_geometry(name)


def _parts(node: exp.Expr) -> Iterator[exp.Expr]:
    """The nodes right below one, in the order they were written."""
    for value in node.args.values():
        yield from (part for part in (value if isinstance(value, list) else [value]) if isinstance(part, exp.Expr))


def _is_modest(node: exp.Expr, tree: exp.Expr, sql: str) -> bool:
    """Tell whether what is read as a geometry can be no deeper than what a person wrote or a table holds."""
    if isinstance(node, _WRITTEN):
        return _is_shallow(node)
    if isinstance(node, exp.Column):
        return not (_is_made(node, tree) and _makes_text(tree, sql))
    if isinstance(node, exp.Concat) and sum(_depth(text.name) for text in node.find_all(exp.Literal)) > MAX_DEPTH:
        return False
    if isinstance(node, exp.Func) and _gives_geometry(_name(node, sql)):
        return True  # which is looked at on its own
    return isinstance(node, (exp.Null, *_PASSED_THROUGH)) and all(_is_modest(part, tree, sql) for part in _parts(node))


def _is_shallow(node: exp.Expr) -> bool:
    """Tell whether what stands in the statement is short, or text with few brackets open at once."""
    if len(node.name) <= MAX_BINARY:
        return _depth(node.name) <= MAX_DEPTH
    binary = not isinstance(node, exp.Literal) or "\x00" in node.name or "\\0" in node.name
    return not binary and _depth(node.name) <= MAX_DEPTH


def _depth(text: str) -> int:
    """Tell how many brackets are open at most."""
    deepest = depth = 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    return deepest


def _is_made(column: exp.Column, tree: exp.Expr) -> bool:
    """Tell whether a column may be one that the statement makes: by a name it gives, or in a query it reads from."""
    if any(alias.alias.lower() == column.name.lower() for alias in tree.find_all(exp.Alias)):
        return True
    makers = tree.find_all(exp.CTE, exp.Values, exp.JSONTable, exp.Lateral, exp.Subquery)
    return any(
        not isinstance(maker, exp.Subquery) or isinstance(maker.parent, (exp.From, exp.Join)) for maker in makers
    )


def _makes_text(tree: exp.Expr, sql: str) -> bool:
    """Tell whether anything in the statement could make, or is, the text of a deep geometry."""
    if any(recursive.args.get("recursive") for recursive in tree.find_all(exp.With)):
        return True
    if not all(map(_is_shallow, tree.find_all(*_WRITTEN))):
        return True
    return any(
        not isinstance(call, _KEEPING_SIZE) and not _gives_geometry(_name(call, sql))
        for call in tree.find_all(exp.Func)
    )
