"""The report as Markdown; figures are links to their files."""

from collections.abc import Iterable, Sequence

from sqlcrystal.escaping import fenced, without_tags
from sqlcrystal.study.report.document import Document
from sqlcrystal.study.report.drawing import Figure
from sqlcrystal.study.report.formats.cells import numeric_columns
from sqlcrystal.study.report.gallery import Exhibit
from sqlcrystal.study.report.table import Cells, ReportTable


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
