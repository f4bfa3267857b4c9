"""An answer in a notebook: the question, its SQL, the first rows, the cards and what it cost."""

from collections.abc import Sequence
from html import escape

from sqlcrystal.types import Row

SHOWN = 20


def answer_html(
    *,
    question: str,
    sql: str | None,
    columns: Sequence[str],
    rows: Sequence[Row],
    cards: Sequence[tuple[str, float, str, str, str]],
    footer: str,
    error: str = "",
) -> str:
    """One block of HTML; every value is escaped, for cells and questions are anybody's text."""
    parts = [f"<p><b>{escape(question)}</b></p>", f"<pre>{escape(sql or 'no SQL in the reply')}</pre>"]
    parts.append(f"<p>{escape(error)}</p>" if error else _table(columns, rows))
    if cards:
        parts.append(_table(("card", "score", "signal", "by", "question"), [tuple(card) for card in cards]))
    return "<div>" + "".join(parts) + f"<p><small>{escape(footer)}</small></p></div>"


def _table(columns: Sequence[str], rows: Sequence[Row]) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in rows[:SHOWN])
    more = f"<p><small>{len(rows) - SHOWN:,} more rows</small></p>" if len(rows) > SHOWN else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(cell: object) -> str:
    return "NULL" if cell is None else escape(str(cell))
