"""Tables for LaTeX: booktabs with caption and label; needs booktabs and amssymb."""

from sqlcrystal.study.report.formats.cells import numeric_columns
from sqlcrystal.study.report.table import ReportTable

ESCAPED = {
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
    "Δ": r"$\Delta$",
    "…": r"\dots{}",
    "·": r"$\cdot$",
    "<": r"$<$",
    ">": r"$>$",
}
TEMPLATE = r"""\begin{table}[t]
\caption{%(caption)s}
\label{tab:%(key)s}
\centering\footnotesize
\begin{tabular}{@{}%(layout)s@{}}
\toprule
%(head)s \\
\midrule
%(body)s
\bottomrule
\end{tabular}
\end{table}
"""


def to_latex(table: ReportTable) -> str:
    """One table."""
    return TEMPLATE % {
        "caption": escape(f"{table.title}. {table.note}".strip()),
        "key": table.key,
        "layout": "".join("r" if flag else "l" for flag in numeric_columns(table)),
        "head": " & ".join(map(escape, table.columns)),
        "body": "\n".join(_line(table, index) for index in range(len(table.rows))),
    }


def _line(table: ReportTable, index: int) -> str:
    row = table.rows[index]
    if len(row) > 1:
        return " & ".join(map(escape, row)) + r" \\"
    gap = "\\addlinespace\n" if index else ""
    return rf"{gap}\multicolumn{{{len(table.columns)}}}{{@{{}}l}}{{\emph{{{escape(row[0])}}}}} \\"


def escape(text: str) -> str:
    """Text that LaTeX sets as it stands."""
    return "".join(ESCAPED.get(letter, letter) for letter in text)
