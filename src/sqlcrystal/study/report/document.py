"""Everything a report holds, made once from the ledgers and rendered several ways."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from sqlcrystal.ledger.records import Manifest
from sqlcrystal.measurement.cost import Workload
from sqlcrystal.study.report.catalogue import sections as table_sections
from sqlcrystal.study.report.comparisons import ROSTER, findings, in_design
from sqlcrystal.study.report.completeness import Completeness, completeness
from sqlcrystal.study.report.cost_tables import DEFAULT_WORKLOAD
from sqlcrystal.study.report.design_tables import conditions
from sqlcrystal.study.report.drawing import Figure
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.study.report.figures import all_figures, confirmatory_contrasts, exploratory_contrasts
from sqlcrystal.study.report.gallery import Exhibit, gallery
from sqlcrystal.study.report.paper import beside_the_paper, published
from sqlcrystal.study.report.sentences import Sentences, sentences
from sqlcrystal.study.report.summary import Summary, summarize
from sqlcrystal.study.report.table import Absent, ReportTable
from sqlcrystal.study.report.talk import talk_figure

FIGURE_SECTIONS = {"crystallization": 0, "mechanism": 1, "ingredients": 1, "decisions": 2, "widths": 2, "solvers": 2}
"""In which section of the tables each figure stands."""


class Section(Struct, frozen=True, kw_only=True):
    """A heading with its figures and tables."""

    heading: str
    figures: tuple[Figure, ...]
    tables: tuple[ReportTable, ...]


class Document(Struct, frozen=True, kw_only=True):
    """A whole report."""

    manifest: Manifest
    summary: Summary
    sentences: Sentences
    contrasts: Figure | None
    """The forest plot of the confirmatory contrasts, the headline first."""
    exploratory: Figure | None
    """The forest plot of all other contrasts."""
    talk: Figure | None
    """The headline alone, as a file beside the page."""
    sections: tuple[Section, ...]
    gallery: tuple[Exhibit, ...]
    completeness: Completeness
    waiting: tuple[str, ...]
    """The questions that arms of the study will answer once they are recorded."""
    absent: tuple[Absent, ...]
    """Tables and figures that cannot be made."""
    conditions: tuple[tuple[str, str], ...]
    against: ReportTable | None
    paper: dict[str, ReportTable]
    """The paper's tables by the key of the study's own; empty unless asked for."""

    @property
    def tables(self) -> tuple[ReportTable, ...]:
        """Every table of the study, in order."""
        own = tuple(table for section in self.sections for table in section.tables)
        return (self.against, *own) if self.against else own

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Every figure, in order."""
        own = tuple(figure for section in self.sections for figure in section.figures)
        return (*filter(None, (self.contrasts, self.exploratory)), *own)


def make_document(
    runs: Sequence[Facts],
    *,
    workload: Workload = DEFAULT_WORKLOAD,
    against_paper: bool = False,
    folder: Path | None = None,
) -> Document:
    """Compute everything a report shows; the first run, which lies in `folder`, is reported, the others beside it."""
    facts = runs[0]
    summary = summarize(facts)
    sections, absent = _sections(runs, workload, against_paper=against_paper)
    answered = {finding.key for finding in findings(facts, tuple(ROSTER.values()))}
    waiting = [plan.asks for plan in ROSTER.values() if plan.key not in answered and in_design(facts, plan)]
    drawn = [confirmatory_contrasts(facts), exploratory_contrasts(facts), talk_figure(facts)]
    contrasts, exploratory, talk = (figure if isinstance(figure, Figure) else None for figure in drawn)
    return Document(
        manifest=facts.manifest,
        summary=summary,
        sentences=sentences(facts, summary),
        contrasts=contrasts,
        exploratory=exploratory,
        talk=talk,
        sections=sections,
        gallery=gallery(facts),
        completeness=completeness(facts, folder),
        waiting=tuple(waiting),
        absent=absent,
        conditions=conditions(facts),
        against=beside_the_paper(facts, summary) if against_paper else None,
        paper={table.key.removeprefix("paper-"): table for table in published().tables()} if against_paper else {},
    )


def _sections(
    runs: Sequence[Facts], workload: Workload, *, against_paper: bool
) -> tuple[tuple[Section, ...], tuple[Absent, ...]]:
    drawn = all_figures(runs[0], against_paper=against_paper)
    sections, absent = [], [figure for figure in drawn if isinstance(figure, Absent)]
    for index, (heading, specs) in enumerate(table_sections(workload).items()):
        results = [spec.make(runs) for spec in specs]
        figures = tuple(
            figure for figure in drawn if isinstance(figure, Figure) and FIGURE_SECTIONS[figure.key] == index
        )
        tables = tuple(table for table in results if isinstance(table, ReportTable))
        absent += [table for table in results if isinstance(table, Absent) and table.needs]
        if figures or tables:
            sections.append(Section(heading=heading, figures=figures, tables=tables))
    return tuple(sections), tuple(absent)
