"""Writing a report into a run folder: summary.json, and report/ with the page, Markdown, LaTeX, CSV and figures."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from sqlcrystal.measurement.cost import Workload
from sqlcrystal.study.ledger import read_ledger
from sqlcrystal.study.report.account import DEFAULT_WORKLOAD
from sqlcrystal.study.report.document import Document, make_document
from sqlcrystal.study.report.drawing import files
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.study.report.gallery import gallery_markdown
from sqlcrystal.study.report.page import to_page
from sqlcrystal.study.report.table import to_csv, to_latex, to_markdown


def write_report(
    folder: Path,
    *,
    beside: Sequence[Path] = (),
    workload: Workload = DEFAULT_WORKLOAD,
    against_paper: bool = False,
) -> Document:
    """Report on the ledger in `folder`; an earlier report there is replaced as a whole."""
    runs = [Facts(read_ledger(one)) for one in (folder, *beside)]
    document = make_document(runs, workload=workload, against_paper=against_paper)
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
    (folder / "report.md").write_text(to_report_markdown(document), encoding="utf-8")
    for table in (*document.tables, *document.paper.values()):
        (folder / "tables" / f"{table.key}.tex").write_text(to_latex(table), encoding="utf-8")
        (folder / "tables" / f"{table.key}.csv").write_text(to_csv(table), encoding="utf-8")
    for figure in document.figures:
        for kind, content in files(figure).items():
            (folder / "figures" / f"{figure.key}.{kind}").write_bytes(content)


def to_report_markdown(document: Document) -> str:
    """The report as Markdown; figures are links to their files."""
    manifest, words = document.manifest, document.sentences
    parts = [f"# {manifest.study}: what the bank is worth", f"{manifest.benchmark} · {manifest.model}"]
    for heading, lines in (
        ("What was found", words.found),
        ("What is not supported", words.unsupported),
        ("How far this reaches", words.scope),
    ):
        if lines:
            parts += [f"## {heading}", "\n".join(f"- {line}" for line in lines)]
    if document.against:
        parts += ["## Beside the paper", to_markdown(document.against)]
    for section in document.sections:
        parts.append(f"## {section.heading}")
        parts += [f"![{f.title}](figures/{f.key}.png)\n\n{f.caption}" for f in section.figures]
        for table in section.tables:
            parts.append(to_markdown(table))
            if table.key in document.paper:
                parts.append(to_markdown(document.paper[table.key]))
    if document.gallery:
        parts += ["## Gallery: fixes and breaks", gallery_markdown(document.gallery)]
    if document.absent:
        parts += ["## Left out", "\n".join(f"- **{one.title}** needs {one.needs}." for one in document.absent)]
    facts = (
        f"version {manifest.version}; study digest {manifest.digest}; model {manifest.model} ({manifest.model_digest});"
        f" embedder {manifest.embedder}; seeds {', '.join(map(str, manifest.seeds))}; rule {manifest.rule}"
    )
    return "\n\n".join([*parts, "## Provenance", facts]) + "\n"
