"""A table as a value, and its four renderings."""

import csv
import html
import io
import re

from msgspec import Struct

Cells = tuple[str, ...]


class Table(Struct, frozen=True, kw_only=True):
    """Rows of ready-made text; a row of one cell is a heading that spans the table."""

    key: str
    title: str
    columns: Cells
    rows: tuple[Cells, ...]
    note: str = ""


class Absent(Struct, frozen=True, kw_only=True):
    """A table or figure the study has no arms for, and what it would need."""

    key: str
    title: str
    needs: str


NUMERIC = re.compile(r"[+−<]?[\d.,]+( ?%| ?pp|M|K|×)?|—|[+−]?[\d.,]+( ?/ ?[+−]?[\d.,]+)+")


def numeric_columns(table: Table) -> tuple[bool, ...]:
    """Which columns hold figures and are set flush right."""
    body = [row for row in table.rows if len(row) == len(table.columns)]
    return tuple(
        bool(body) and all(NUMERIC.fullmatch(row[index]) or not row[index] for row in body)
        for index in range(len(table.columns))
    )


def to_html(table: Table) -> str:
    """The table inside its own scrolling box, so that a phone's page never scrolls sideways."""
    right = numeric_columns(table)
    dense = ' class="dense"' if len(table.columns) > 10 else ""
    align = [' class="num"' if flag else "" for flag in right]
    head = "".join(f'<th scope="col"{a}>{html.escape(c)}</th>' for c, a in zip(table.columns, align, strict=True))
    lines = []
    for row in table.rows:
        if len(row) == 1:
            heading = html.escape(row[0])
            lines.append(f'<tr class="group"><th colspan="{len(table.columns)}" scope="rowgroup">{heading}</th></tr>')
        else:
            cells = "".join(
                f"<td{a or _wrap(cell)}>{html.escape(cell)}</td>" for cell, a in zip(row, align, strict=True)
            )
            lines.append(f"<tr>{cells}</tr>")
    note = f'<p class="note">{html.escape(table.note)}</p>' if table.note else ""
    return (
        f'<section class="table" id="table-{table.key}"><h3>{html.escape(table.title)}</h3>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{html.escape(table.title, quote=True)}">'
        f"<table{dense}><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>{note}</section>"
    )


def _wrap(cell: str) -> str:
    """Text may break over lines; figures may not."""
    if len(cell) > 44:
        return ' class="wide"'
    return ' class="words"' if len(cell) > 14 and not any(letter.isdigit() for letter in cell) else ""


def to_markdown(table: Table) -> str:
    """A pipe table under its title, with the note below."""
    right = numeric_columns(table)
    width = len(table.columns)

    def line(cells: Cells) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    rule = "| " + " | ".join("---:" if flag else "---" for flag in right) + " |"
    body = [line(row if len(row) == width else (f"**{row[0]}**", *[""] * (width - 1))) for row in table.rows]
    note = ["", table.note] if table.note else []
    return "\n".join([f"### {table.title}", "", line(table.columns), rule, *body, *note, ""])


LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "−": r"$-$",
    "–": "--",
    "—": "---",
    "×": r"$\times$",
    "→": r"$\to$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "±": r"$\pm$",
    "∅": r"$\varnothing$",
    "…": r"\dots{}",
    "·": r"$\cdot$",
    "<": r"$<$",
    ">": r"$>$",
}


def escape_latex(text: str) -> str:
    """Text that LaTeX sets as it stands."""
    return "".join(LATEX.get(letter, letter) for letter in text)


def to_latex(table: Table) -> str:
    """A booktabs table with caption and label; needs \\usepackage{booktabs} and amssymb."""
    layout = "".join("r" if flag else "l" for flag in numeric_columns(table))
    lines = []
    for index, row in enumerate(table.rows):
        if len(row) == 1:
            gap = "" if index == 0 else "\\addlinespace\n"
            lines.append(
                f"{gap}\\multicolumn{{{len(table.columns)}}}{{@{{}}l}}{{\\emph{{{escape_latex(row[0])}}}}} \\\\"
            )
        else:
            lines.append(" & ".join(escape_latex(cell) for cell in row) + " \\\\")
    caption = escape_latex(f"{table.title}. {table.note}".strip())
    head = " & ".join(escape_latex(column) for column in table.columns)
    return "\n".join(
        [
            "\\begin{table}[t]",
            f"\\caption{{{caption}}}",
            f"\\label{{tab:{table.key}}}",
            "\\centering\\footnotesize",
            f"\\begin{{tabular}}{{@{{}}{layout}@{{}}}}",
            "\\toprule",
            f"{head} \\\\",
            "\\midrule",
            *lines,
            "\\bottomrule",
            "\\end{tabular}",
            "\\end{table}",
            "",
        ]
    )


def to_csv(table: Table) -> str:
    """Comma-separated, figures with an ASCII minus so that a spreadsheet reads them."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([[cell.replace("−", "-") for cell in row] for row in table.rows])
    return out.getvalue()
