"""Writing a report into a run folder: summary.json, and report/ with the page, Markdown, LaTeX, CSV and figures."""

import csv
import io
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from sqlcrystal.escaping import csv_cell, fenced, without_tags
from sqlcrystal.ledger.records import read_ledger
from sqlcrystal.measurement.clusters import DEFAULT_METHOD
from sqlcrystal.measurement.cost import Workload
from sqlcrystal.study.report.cost_tables import DEFAULT_WORKLOAD
from sqlcrystal.study.report.document import Document, Exhibit, make_document
from sqlcrystal.study.report.drawing import Figure, files
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.study.report.html import to_page
from sqlcrystal.study.report.table import Cells, ReportTable, numeric_columns


def to_csv(table: ReportTable) -> str:
    """Comma-separated, figures with an ASCII minus so that a spreadsheet reads them."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([[csv_cell(cell.replace("−", "-")) for cell in row] for row in table.rows])
    return out.getvalue()


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
LATEX_TABLE = r"""\begin{table}[t]
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
    return LATEX_TABLE % {
        "caption": latex_text(f"{table.title}. {table.note}".strip()),
        "key": table.key,
        "layout": "".join("r" if flag else "l" for flag in numeric_columns(table)),
        "head": " & ".join(map(latex_text, table.columns)),
        "body": "\n".join(_latex_line(table, index) for index in range(len(table.rows))),
    }


def _latex_line(table: ReportTable, index: int) -> str:
    row = table.rows[index]
    if len(row) > 1:
        return " & ".join(map(latex_text, row)) + r" \\"
    gap = "\\addlinespace\n" if index else ""
    return rf"{gap}\multicolumn{{{len(table.columns)}}}{{@{{}}l}}{{\emph{{{latex_text(row[0])}}}}} \\"


def latex_text(text: str) -> str:
    """Text that LaTeX sets as it stands."""
    return "".join(ESCAPED.get(letter, letter) for letter in text)


def to_report(document: Document) -> str:
    """The whole report."""
    manifest, words = document.manifest, document.sentences
    parts = [f"# {without_tags(manifest.study)}: what the bank is worth"]
    if document.completeness.interim:
        parts.append(f"**Interim: {document.completeness.counted}.**")
    parts += [f"**{heading}.** {without_tags(text)}" for heading, text in words.opening]
    parts += [_figure(figure) for figure in (document.contrasts, document.exploratory) if figure]
    for heading, lines in (
        ("More of what was found", (*words.more, *words.supported)),
        ("What is not supported", words.open),
        ("How far this reaches", words.scope),
    ):
        parts += [f"## {heading}", _listed(lines)] if lines else []
    if document.against:
        parts += ["## Beside the paper", to_markdown(document.against)]
    for section in document.sections:
        parts += [f"## {section.heading}", *map(_figure, section.figures)]
        for table in section.tables:
            parts.append(to_markdown(table))
            if table.key in document.paper:
                parts.append(to_markdown(document.paper[table.key]))
    if document.gallery:
        parts += ["## Gallery: fixes and breaks", _gallery(document.gallery)]
    parts += [*_left_out(document), "## Conditions"]
    parts.append(_listed(f"{name}: {value}" for name, value in document.conditions))
    return "\n\n".join(parts) + "\n"


def to_markdown(table: ReportTable) -> str:
    """A pipe table under its title, with the note below."""
    width = len(table.columns)

    def line(cells: Cells) -> str:
        return "| " + " | ".join(without_tags(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    rule = "| " + " | ".join("---:" if flag else "---" for flag in numeric_columns(table)) + " |"
    body = [line(row if len(row) == width else (f"**{row[0]}**", *[""] * (width - 1))) for row in table.rows]
    note = ["", without_tags(table.note)] if table.note else []
    return "\n".join([f"### {without_tags(table.title)}", "", line(table.columns), rule, *body, *note, ""])


def _listed(lines: Iterable[str]) -> str:
    return "\n".join(f"- {without_tags(line)}" for line in lines)


def _figure(figure: Figure) -> str:
    return f"![{without_tags(figure.title)}](figures/{figure.key}.png)\n\n{without_tags(figure.caption)}"


def _left_out(document: Document) -> list[str]:
    parts = []
    count = document.completeness
    if count.interim:
        lines = [f"**{arm}**: {', '.join(settings)}" for arm, settings in count.missing.items()]
        parts += ["## Not recorded yet", f"`{count.command}` fills them.", _listed(lines)]
        parts += ["They will answer:", _listed(document.waiting)] if document.waiting else []
    if document.absent:
        parts += ["## Left out", _listed(f"**{absent.title}** needs {absent.needs}." for absent in document.absent)]
    return parts


def _gallery(exhibits: Sequence[Exhibit]) -> str:
    parts = []
    for exhibit in exhibits:
        cards = [
            f"Card: {without_tags(card.question)}\n\n{fenced(card.sql)}\n\n"
            + f"Traced: {without_tags(', '.join(card.traced)) or 'nothing'}. {card.cause}".removesuffix(". ")
            for card in exhibit.cards
        ]
        before, after = (fenced(sql) for sql in (exhibit.before, exhibit.after))
        lines = [
            f"### {without_tags(exhibit.heading)}",
            without_tags(exhibit.question),
            f"Without memory:\n\n{before}",
            f"With memory:\n\n{after}",
        ]
        parts.append("\n\n".join([*lines, *cards]))
    return "\n\n".join(parts)


def write_report(
    folder: Path,
    *,
    beside: Sequence[Path] = (),
    method: str = DEFAULT_METHOD,
    workload: Workload = DEFAULT_WORKLOAD,
    against_paper: bool = False,
) -> Document:
    """Report on the ledger in `folder`; an earlier report there is replaced as a whole."""
    runs = [Facts(read_ledger(place), method=method) for place in (folder, *beside)]
    document = make_document(runs, workload=workload, against_paper=against_paper, folder=folder)
    fresh, target = folder / "report.tmp", folder / "report"
    shutil.rmtree(fresh, ignore_errors=True)
    (fresh / "tables").mkdir(parents=True)
    (fresh / "figures").mkdir()
    _write_parts(document, fresh)
    shutil.rmtree(target, ignore_errors=True)
    fresh.rename(target)
    encoded = msgspec.json.format(msgspec.json.encode(document.summary), indent=2)
    (folder / "summary.json").write_bytes(encoded + b"\n")
    return document


def _write_parts(document: Document, folder: Path) -> None:
    (folder / "index.html").write_text(to_page(document), encoding="utf-8")
    (folder / "report.md").write_text(to_report(document), encoding="utf-8")
    for table in (*document.tables, *document.paper.values()):
        (folder / "tables" / f"{table.key}.tex").write_text(to_latex(table), encoding="utf-8")
        (folder / "tables" / f"{table.key}.csv").write_text(to_csv(table), encoding="utf-8")
    for figure in (*document.figures, *([document.talk] if document.talk else [])):
        for kind, content in files(figure).items():
            (folder / "figures" / f"{figure.key}.{kind}").write_bytes(content)
