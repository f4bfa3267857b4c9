"""Everything a report holds, made once from the ledgers and rendered several ways, with its gallery of changes."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from sqlcrystal.ledger.records import BankedCard, Manifest
from sqlcrystal.measurement.attribution import new_elements, stands_in
from sqlcrystal.measurement.cost import Workload
from sqlcrystal.measurement.flips import Pair, breaks, fixes, stability
from sqlcrystal.study.report.catalogue import sections as table_sections
from sqlcrystal.study.report.comparisons import ROSTER, findings, in_design
from sqlcrystal.study.report.cost_tables import DEFAULT_WORKLOAD
from sqlcrystal.study.report.design_tables import conditions
from sqlcrystal.study.report.drawing import Figure
from sqlcrystal.study.report.facts import Completeness, Facts, completeness
from sqlcrystal.study.report.figures import all_figures, confirmatory_contrasts, exploratory_contrasts, talk_figure
from sqlcrystal.study.report.mechanism_tables import caused_by
from sqlcrystal.study.report.paper import beside_the_paper, published
from sqlcrystal.study.report.sentences import Sentences, sentences
from sqlcrystal.study.report.summary import Summary, summarize
from sqlcrystal.study.report.table import Absent, ReportTable
from sqlcrystal.types import CardId

FIXES, BREAKS, CARDS = 4, 3, 2


class ShownCard(Struct, frozen=True, kw_only=True):
    """A card of the window and which new elements of the answer stand in it."""

    question: str
    sql: str
    traced: tuple[str, ...]
    caused: bool | None = None
    """True if the change is gone without this card alone; None where nothing was asked without it."""

    @property
    def cause(self) -> str:
        """Tell in words whether the card made the change; empty where that is not known."""
        if self.caused is None:
            return ""
        return "Without this card the change is gone." if self.caused else "The change stays without this card."


class Exhibit(Struct, frozen=True, kw_only=True):
    """One question that memory fixed or broke."""

    verdict: str
    stable: bool
    database: str
    question: str
    split: str
    """The word for a split: seed or fold."""
    seed: int
    before: str
    after: str
    cards: tuple[ShownCard, ...]

    @property
    def heading(self) -> str:
        """Tell what happened, where, and whether it does so under every seed."""
        kind = {"fix": "Fixed", "break": "Broken"}[self.verdict]
        stable = f", stable across {self.split}s" if self.stable else ""
        return f"{kind}{stable} · {self.database} · {self.split} {self.seed}"


def gallery(facts: Facts) -> tuple[Exhibit, ...]:
    """Stable flips first, then those with a traceable card; one per question and, where possible, per database.

    A change whose right answer is right by luck of the rows is none that memory made, and is not shown.
    """
    flips = stability(facts.headline)
    stable = {*flips.stable_fixes, *flips.stable_breaks}
    lucky = set(facts.ledger.lucky or ())
    earned = [pair for pair in facts.headline if pair.key not in lucky]
    chosen = [
        *_choose(facts, fixes(earned), stable, FIXES),
        *_choose(facts, breaks(earned), stable, BREAKS),
    ]
    return tuple(chosen)


def _choose(facts: Facts, pairs: Sequence[Pair], stable: set[str], limit: int) -> list[Exhibit]:
    exhibits = [_exhibit(facts, pair, pair.after.question in stable) for pair in pairs]
    ranked = sorted(
        exhibits,
        key=lambda exhibit: (
            not exhibit.stable,
            not any(card.traced for card in exhibit.cards),
            exhibit.database,
            exhibit.question,
            exhibit.seed,
        ),
    )
    picked: list[Exhibit] = []
    for fresh_database in (True, False):
        for exhibit in ranked:
            seen = {(taken.database if fresh_database else taken.question) for taken in picked}
            if len(picked) < limit and (exhibit.database if fresh_database else exhibit.question) not in seen:
                picked.append(exhibit)
    return picked


def _exhibit(facts: Facts, pair: Pair, stable: bool) -> Exhibit:
    row = next(row for row in facts.rows(facts.default) if (row.seed, row.question) == pair.key)
    fresh = sorted(new_elements(pair), key=lambda element: (-len(element), element))
    caused = caused_by(facts, row.seed, row.question)
    window = [_shown_card(card, fresh, caused) for card in facts.window(facts.default, row)]
    ranked = sorted(window, key=lambda card: (not card.caused, -len(card.traced)))[:CARDS]
    return Exhibit(
        verdict=pair.verdict,
        stable=stable,
        database=row.database,
        question=facts.ledger.questions.get(row.question, row.question),
        split=facts.split,
        seed=row.seed,
        before=pair.before.sql or "(no SQL)",
        after=pair.after.sql or "(no SQL)",
        cards=tuple(ranked),
    )


def _shown_card(card: BankedCard, fresh: Sequence[str], caused: frozenset[CardId] | None) -> ShownCard:
    return ShownCard(
        question=card.question,
        sql=card.sql,
        traced=tuple(element for element in fresh if stands_in(element, card.text)),
        caused=None if caused is None else card.id in caused,
    )


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
