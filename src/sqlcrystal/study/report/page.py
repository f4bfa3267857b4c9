"""The report as one HTML file: no script, no network, tables that scroll in their own box."""

import html
from importlib import resources

from sqlcrystal.study.report.document import Document, Section
from sqlcrystal.study.report.drawing import Figure, page_svgs
from sqlcrystal.study.report.gallery import gallery_html
from sqlcrystal.study.report.summary import MULTIPLICITY, Summary
from sqlcrystal.study.report.table import to_html
from sqlcrystal.study.report.wording import interval, percent, points, probability


def to_page(document: Document) -> str:
    """The whole page."""
    manifest = document.manifest
    title = f"{manifest.study}: what the bank is worth"
    style = resources.files("sqlcrystal.study.report").joinpath("page.css").read_text(encoding="utf-8")
    against = to_html(document.against) if document.against else ""
    body = "".join(
        [
            f"<header><h1>{html.escape(title)}</h1>",
            f'<p class="lead">{html.escape(manifest.benchmark)} · {html.escape(manifest.model)} · '
            f"seeds {', '.join(map(str, manifest.seeds))} · rule {html.escape(manifest.rule)}</p></header>",
            tiles(document.summary),
            said(document),
            f'<h2 id="against">Beside the paper</h2>{against}' if against else "",
            contents(document),
            *(section_html(document, index, section) for index, section in enumerate(document.sections)),
            f'<h2 id="gallery">Gallery: fixes and breaks</h2>{gallery_html(document.gallery)}'
            if document.gallery
            else "",
            left_out(document),
            provenance(document),
        ]
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{html.escape(title)}</title><style>{style}</style></head><body><main>{body}</main></body></html>\n"
    )


def tiles(summary: Summary) -> str:
    """The headline figures."""
    lift = interval(*summary.lift_ci_pp) if summary.lift_ci_pp else ""
    ratio = f"95% interval {interval(*summary.cr_ci, 0)}" if summary.cr_ci else "no interval"
    shown = (
        (_share(summary.p0), "no memory, P<sub>0</sub>", f"n = {summary.n_heldout:,}"),
        (_share(summary.pm), "with memory, P<sub>M</sub>", f"{summary.cards:,} cards over all seeds"),
        (_share(summary.pk), "on-demand repair, P<sub>K</sub>", "never stored"),
        (f"{points(summary.lift_pp)} pp", "lift", f"{lift}, p {probability(summary.lift_p)}"),
        (_share(summary.cr, "undefined"), "crystallization ratio", ratio),
        (_share(summary.replay), "exact-query replay", "own card eligible"),
        (_share(summary.retention), "cross-question retention", "own card removed"),
        (_share(summary.rerun_floor), "bare rerun", "banked questions, no memory"),
    )
    items = "".join(
        f"<li><b>{html.escape(value)}</b><span>{name}</span><small>{html.escape(more)}</small></li>"
        for value, name, more in shown
    )
    return f'<ul class="tiles">{items}</ul>'


def _share(value: float | None, missing: str = "not run") -> str:
    return missing if value is None else f"{percent(value)}%"


def said(document: Document) -> str:
    """What was found, what is not supported, and how far it reaches."""
    parts = []
    for heading, lines in (
        ("What was found", document.sentences.found),
        ("What is not supported", document.sentences.unsupported),
        ("How far this reaches", document.sentences.scope),
    ):
        if lines:
            parts.append(f"<h2>{heading}</h2><ul>{''.join(f'<li>{html.escape(line)}</li>' for line in lines)}</ul>")
    return "".join(parts)


def contents(document: Document) -> str:
    """Links to the sections."""
    links = [f'<li><a href="#section-{i}">{html.escape(s.heading)}</a></li>' for i, s in enumerate(document.sections)]
    if document.gallery:
        links.append('<li><a href="#gallery">Gallery</a></li>')
    links += ['<li><a href="#left-out">Left out</a></li>', '<li><a href="#provenance">Provenance</a></li>']
    return f'<nav aria-label="Contents"><h2>Contents</h2><ul>{"".join(links)}</ul></nav>'


def section_html(document: Document, index: int, section: Section) -> str:
    """A section: figures first, then tables, the paper's own folded below each."""
    parts = [f'<h2 id="section-{index}">{html.escape(section.heading)}</h2>', *map(figure_html, section.figures)]
    for table in section.tables:
        parts.append(to_html(table))
        theirs = document.paper.get(table.key)
        if theirs:
            parts.append(
                f'<details class="paper"><summary>The paper\'s own figures</summary>{to_html(theirs)}</details>'
            )
    return "".join(parts)


def figure_html(figure: Figure) -> str:
    """A figure with its caption."""
    return (
        f'<figure id="figure-{figure.key}"><h3>{html.escape(figure.title)}</h3>'
        f'<div class="panels">{"".join(page_svgs(figure))}</div>'
        f"<figcaption>{html.escape(figure.caption)}</figcaption></figure>"
    )


def left_out(document: Document) -> str:
    """What the study has no arms for."""
    if not document.absent:
        return '<h2 id="left-out">Left out</h2><p>Nothing: the study has arms for every table and figure.</p>'
    items = "".join(f"<li><b>{html.escape(a.title)}</b> needs {html.escape(a.needs)}.</li>" for a in document.absent)
    return f'<h2 id="left-out">Left out</h2><p>This study has no arms for:</p><ul>{items}</ul>'


def provenance(document: Document) -> str:
    """What was run, by which version, on what."""
    manifest, summary = document.manifest, document.summary
    rows = (
        ("study", manifest.study),
        ("study digest", manifest.digest),
        ("sqlcrystal", manifest.version),
        ("benchmark", manifest.benchmark),
        ("model", manifest.model),
        ("model digest", manifest.model_digest),
        ("embedder", manifest.embedder),
        ("seeds", ", ".join(map(str, manifest.seeds))),
        ("scoring rule", f"{manifest.rule}; an unevaluable question counts as wrong"),
        ("default arm", manifest.default_arm),
        ("arms", ", ".join(arm.name for arm in manifest.arms)),
        ("intervals", f"{summary.method} over databases, 95%; the paper's two-stage bootstrap beside it"),
        ("multiplicity", MULTIPLICITY),
        ("started", manifest.started or "not recorded"),
        ("finished", manifest.finished or "not recorded"),
    )
    items = "".join(f"<dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd>" for name, value in rows)
    return f'<h2 id="provenance">Provenance</h2><dl>{items}</dl>'
