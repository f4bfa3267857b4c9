"""The report as one HTML file: no script, no network, tables that scroll in their own box."""

from collections.abc import Sequence
from html import escape
from importlib import resources

from sqlcrystal.study.report.document import Document, Exhibit, Section, ShownCard
from sqlcrystal.study.report.drawing import Figure, page_svgs
from sqlcrystal.study.report.summary import Summary
from sqlcrystal.study.report.table import ReportTable, interval, numeric_columns, percent, plural, points, probability

LONG = 20
"""Rows beyond which a table is folded, whatever it holds."""
WIDE = 3
"""Columns beyond which a phone scrolls a table sideways."""
TEMPLATE = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{title}</title><style>{style}</style></head><body><main>
<header><h1>{title}</h1><p class="lead">{lead}</p>{interim}</header>
<div class="first"><div>{opening}
{tiles}</div>
{contrasts}</div>
{exploratory}
{contents}
{said}
{against}
{sections}
{gallery}
{missing}
{conditions}
</main></body></html>
"""


def to_page(document: Document) -> str:
    """The whole page."""
    manifest, count = document.manifest, document.completeness
    seeds = ", ".join(map(str, manifest.seeds))
    style = resources.files("sqlcrystal.study.report").joinpath("page.css").read_text(encoding="utf-8")
    return TEMPLATE.format(
        title=escape(f"{manifest.study}: what the bank is worth"),
        style=style,
        lead=escape(f"{manifest.benchmark} · {manifest.model} · {manifest.split}s {seeds} · rule {manifest.rule}"),
        interim=f'<p class="interim">Interim report: {escape(count.counted)}.</p>' if count.interim else "",
        opening=_opening(document),
        tiles=_tiles(document.summary, manifest.split),
        contrasts=_figure(document.contrasts, _talk(document)) if document.contrasts else "",
        exploratory=_folded(document.exploratory.title, _figure(document.exploratory)) if document.exploratory else "",
        contents=_contents(document),
        said=_in_words(document),
        against=f'<h2 id="against">Beside the paper</h2>{to_html(document.against)}' if document.against else "",
        sections="".join(_section(document, index, section) for index, section in enumerate(document.sections)),
        gallery=_gallery(document.gallery),
        missing=_missing(document),
        conditions=_conditions(document),
    )


# ── the first screen ─────────────────────────────────────────────────────────────────────────────────────────────────


def _opening(document: Document) -> str:
    lines = (f"<dt>{heading}</dt><dd>{escape(text)}</dd>" for heading, text in document.sentences.opening)
    return f'<dl class="opening">{"".join(lines)}</dl>'


def _tiles(summary: Summary, split: str) -> str:
    """The headline figures, the lift with its verdict first."""
    sure = f"{interval(*summary.lift_ci_pp, 1)}, p {probability(summary.lift_p)}" if summary.lift_ci_pp else ""
    if summary.lift_ci_question_level_pp:
        sure = f"question-level {interval(*summary.lift_ci_question_level_pp, 1)}, these databases only"
    ratio = summary.cr_interval or "no repair pass"
    if summary.cr_ci:
        ratio = f"95% interval {interval(*summary.cr_ci, 0)}"
    elif summary.cr_interval in ("outside", "unbounded"):
        ratio = "95% interval unbounded"
    shown = [
        (f"{points(summary.lift_pp, 1)} pp", f"lift: {summary.verdict}", sure),
        (_share(summary.p0), "right without memory (P_0)", plural(summary.n_heldout, "held-out answer")),
        (_share(summary.pm), "right with memory (P_M)", f"{plural(summary.cards, 'card')} in the bank, all {split}s"),
        (_share(summary.pk), "right after repair on demand (P_K)", "an oracle starts it; never stored"),
        (_share(summary.cr, "undefined"), "lift over what repair adds (CR)", ratio),
        (_share(summary.replay), "exact-query replay", "a banked question, its own card allowed"),
        (_share(summary.retention), "cross-question retention", "a banked question, its own card removed"),
        (_share(summary.rerun_floor), "bare rerun", "a banked question, no memory"),
    ]
    if summary.pe is not None:
        shown.insert(
            4, (_share(summary.pe), "right after repair on the engine's signs (P_E)", "no oracle; never stored")
        )
    items = "".join(
        f"<li><b>{escape(value)}</b><span>{escape(name)}</span><small>{escape(more)}</small></li>"
        for value, name, more in shown
    )
    return f'<ul class="tiles">{items}</ul>'


def _share(value: float | None, missing: str = "not run") -> str:
    return missing if value is None else f"{percent(value)}%"


def _contents(document: Document) -> str:
    links = [("found", "More of what was found")]
    links += [("against", "Beside the paper")] if document.against else []
    links += [(f"section-{index}", section.heading) for index, section in enumerate(document.sections)]
    links += [("gallery", "Gallery")] if document.gallery else []
    links += [("missing", "Not recorded, not in this study"), ("conditions", "Conditions")]
    items = "".join(f'<li><a href="#{key}">{escape(name)}</a></li>' for key, name in links)
    return f'<nav aria-label="Contents"><h2>Contents</h2><ul>{items}</ul></nav>'


def _in_words(document: Document) -> str:
    """The rest in words; what is not supported is folded."""
    words = document.sentences
    more = _listed((*words.more, *words.supported))
    parts = [f'<h2 id="found">More of what was found</h2>{more or "<p>Nothing yet.</p>"}']
    if words.open:
        parts.append(_folded(f"What is not supported ({len(words.open)})", _listed(words.open)))
    return "".join([*parts, f"<h3>How far this reaches</h3>{_listed(words.scope)}"])


def _listed(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>" if lines else ""


def _folded(title: str, body: str) -> str:
    return f'<details class="fold"><summary>{escape(title)}</summary>{body}</details>'


# ── sections ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _section(document: Document, index: int, section: Section) -> str:
    """A section: figures first, then tables."""
    parts = [f'<h2 id="section-{index}">{escape(section.heading)}</h2>', *map(_figure, section.figures)]
    parts += [to_html(table, document.paper.get(table.key)) for table in section.tables]
    return "".join(parts)


def _talk(document: Document) -> str:
    """Lead to the headline as a file that can be put into a talk."""
    return (
        '<p class="note"><a href="figures/headline.svg">The headline as an SVG for a talk</a></p>'
        if document.talk
        else ""
    )


def _figure(figure: Figure, after: str = "") -> str:
    return (
        f'<figure id="figure-{figure.key}"><h3>{escape(figure.title)}</h3>'
        f'<div class="panels">{"".join(page_svgs(figure))}</div>'
        f"<figcaption>{escape(figure.caption)}</figcaption>{after}</figure>"
    )


def to_html(table: ReportTable, theirs: ReportTable | None = None) -> str:
    """A table under its title, the paper's own folded beneath it; audits and long tables are folded as a whole."""
    inner = _scrolling(table) + (_folded("The paper's own figures", _scrolling(theirs)) if theirs else "")
    if table.folded or len(table.rows) > LONG:
        body = f'<details class="fold"><summary><h3>{escape(table.title)}</h3></summary>{inner}</details>'
    else:
        body = f"<h3>{escape(table.title)}</h3>{inner}"
    return f'<section class="table" id="table-{table.key}">{body}</section>'


def _scrolling(table: ReportTable) -> str:
    """The table in a scrolling box of its own, so that a phone's page never scrolls sideways, and a hint."""
    align = [' class="num"' if flag else "" for flag in numeric_columns(table)]
    head = "".join(
        f'<th scope="col"{side}>{escape(column)}</th>' for column, side in zip(table.columns, align, strict=True)
    )
    body = "".join(_row(row, align) for row in table.rows)
    dense = ' class="dense"' if len(table.columns) > 9 else ""
    hint = '<p class="hint" aria-hidden="true">scrolls sideways →</p>' if len(table.columns) > WIDE else ""
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    return (
        f'{hint}<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.title, quote=True)}">'
        f"<table{dense}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{note}"
    )


def _row(row: Sequence[str], align: Sequence[str]) -> str:
    if len(row) == 1:
        return f'<tr class="group"><th colspan="{len(align)}" scope="rowgroup">{escape(row[0])}</th></tr>'
    cells = "".join(f"<td{side or _wrap(cell)}>{escape(cell)}</td>" for cell, side in zip(row, align, strict=True))
    return f"<tr>{cells}</tr>"


def _wrap(cell: str) -> str:
    """Text may break over lines; figures may not."""
    if len(cell) > 44:
        return ' class="wide"'
    return ' class="words"' if len(cell) > 14 and cell[0].isalpha() else ""


# ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _gallery(exhibits: Sequence[Exhibit]) -> str:
    """Fixes and breaks as cards that open without script."""
    if not exhibits:
        return ""
    shown = "".join(_exhibit(exhibit, index == 0) for index, exhibit in enumerate(exhibits))
    return f'<h2 id="gallery">Gallery: fixes and breaks</h2>{shown}'


def _exhibit(exhibit: Exhibit, first: bool) -> str:
    fixed = exhibit.verdict == "fix"
    cards = "".join(map(_card, exhibit.cards))
    return (
        f'<details class="exhibit {exhibit.verdict}"{" open" if first else ""}>'
        f"<summary>{escape(exhibit.heading)}<br><q>{escape(exhibit.question)}</q></summary>"
        f"<h4>Without memory ({'wrong' if fixed else 'right'})</h4><pre>{escape(exhibit.before)}</pre>"
        f"<h4>With memory ({'right' if fixed else 'wrong'})</h4><pre>{escape(exhibit.after)}</pre>"
        + (f"<h4>Cards it was shown</h4><ol>{cards}</ol>" if cards else "")
        + "</details>"
    )


def _card(card: ShownCard) -> str:
    traced = ", ".join(f"<code>{escape(element)}</code>" for element in card.traced)
    origin = (
        f"New in the answer and found in this card: {traced}"
        if traced
        else "No new element of the answer stands in this card."
    )
    note = f"{origin} {card.cause}".strip()
    return f'<li><p>{escape(card.question)}</p><pre>{escape(card.sql)}</pre><p class="note">{note}</p></li>'


def _missing(document: Document) -> str:
    """Tell what is not recorded yet, with the command that fills it; then what the study has no arms for."""
    count, parts = document.completeness, ['<h2 id="missing">Not recorded, not in this study</h2>']
    if count.interim:
        lines = [f"{arm}: {', '.join(settings)}" for arm, settings in count.missing.items()]
        parts.append(
            f"<p>Of this study, {escape(count.counted)}. What is missing is filled by"
            f" <code>{escape(count.command)}</code>, which asks only what is not recorded.</p>"
            + _folded(f"Not recorded yet: {len(lines)} arms", _listed(lines))
        )
        if document.waiting:
            parts.append(_folded(f"Questions they will answer ({len(document.waiting)})", _listed(document.waiting)))
    if document.absent:
        lines = [f"{absent.title}: needs {absent.needs}." for absent in document.absent]
        parts.append(_folded(f"Tables and figures that could not be made ({len(lines)})", _listed(lines)))
    if len(parts) == 1:
        parts.append("<p>Nothing: the study has arms for every table and figure, and all are recorded.</p>")
    return "".join(parts)


def _conditions(document: Document) -> str:
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in document.conditions)
    return f'<h2 id="conditions">Conditions</h2><dl class="facts">{items}</dl>'
