"""Writing a report into a run folder: summary.json, and report/ with the page, Markdown, LaTeX, CSV and figures."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from sqlcrystal.ledger.records import read_ledger
from sqlcrystal.measurement.cost import Workload
from sqlcrystal.measurement.intervals import DEFAULT_METHOD
from sqlcrystal.study.report.cost_tables import DEFAULT_WORKLOAD
from sqlcrystal.study.report.document import Document, make_document
from sqlcrystal.study.report.drawing import files
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.study.report.formats.html import to_page
from sqlcrystal.study.report.formats.latex import to_latex
from sqlcrystal.study.report.formats.markdown import to_report
from sqlcrystal.study.report.formats.spreadsheet import to_csv


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
