"""Everything a report holds, made once from the ledgers and rendered several ways."""

from collections.abc import Sequence

from msgspec import Struct

from sqlcrystal.measurement.cost import Workload
from sqlcrystal.study.ledger import Manifest
from sqlcrystal.study.report.account import DEFAULT_WORKLOAD
from sqlcrystal.study.report.catalogue import all_tables
from sqlcrystal.study.report.comparisons import ROSTER, findings
from sqlcrystal.study.report.drawing import Figure
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.study.report.figures import all_figures
from sqlcrystal.study.report.gallery import Exhibit, gallery
from sqlcrystal.study.report.paper import published
from sqlcrystal.study.report.sentences import Sentences, sentences
from sqlcrystal.study.report.summary import Summary, summarize
from sqlcrystal.study.report.table import Absent, Table
from sqlcrystal.study.report.wording import NONE, interval, percent, points, probability

FIGURE_SECTIONS = {"crystallization": 0, "mechanism": 1, "decisions": 2, "widths": 2}
"""In which section of the tables each figure stands."""


class Section(Struct, frozen=True, kw_only=True):
    """A heading with its figures and tables."""

    heading: str
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]


class Document(Struct, frozen=True, kw_only=True):
    """A whole report."""

    manifest: Manifest
    summary: Summary
    sentences: Sentences
    sections: tuple[Section, ...]
    gallery: tuple[Exhibit, ...]
    absent: tuple[Absent, ...]
    against: Table | None
    paper: dict[str, Table]
    """The paper's tables by the key of the study's own; empty unless asked for."""

    @property
    def tables(self) -> tuple[Table, ...]:
        """Every table of the study, in order."""
        own = tuple(table for section in self.sections for table in section.tables)
        return (self.against, *own) if self.against else own

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Every figure, in order."""
        return tuple(figure for section in self.sections for figure in section.figures)


def make_document(
    runs: Sequence[Facts], *, workload: Workload = DEFAULT_WORKLOAD, against_paper: bool = False
) -> Document:
    """Compute everything a report shows; the first run is the one reported, the others stand beside it."""
    facts = runs[0]
    summary = summarize(facts)
    tables, drawn = all_tables(runs, workload), all_figures(facts, against_paper=against_paper)
    sections, absent = [], [figure for figure in drawn if isinstance(figure, Absent)]
    for index, (heading, made) in enumerate(tables.items()):
        mine = [f for f in drawn if isinstance(f, Figure) and FIGURE_SECTIONS[f.key] == index]
        absent += [table for table in made if isinstance(table, Absent)]
        kept = tuple(table for table in made if isinstance(table, Table))
        if mine or kept:
            sections.append(Section(heading=heading, figures=tuple(mine), tables=kept))
    return Document(
        manifest=facts.manifest,
        summary=summary,
        sentences=sentences(facts, summary),
        sections=tuple(sections),
        gallery=gallery(facts),
        absent=tuple(absent),
        against=beside_the_paper(facts, summary) if against_paper else None,
        paper={table.key.removeprefix("paper-"): table for table in published().tables()} if against_paper else {},
    )


def beside_the_paper(facts: Facts, summary: Summary) -> Table:
    """The study's headline and comparisons beside the published ones."""
    paper = published()
    theirs = paper.headline
    rows: list[tuple[str, ...]] = [("Headline",)]
    pairs = (
        ("No memory, P_0 %", percent(summary.p0, 2), percent(theirs.p0, 2)),
        ("Memory, P_M %", percent(summary.pm, 2), percent(theirs.pm, 2)),
        ("On-demand repair, P_K %", percent(summary.pk, 2), percent(theirs.pk, 2)),
        ("Lift (pp)", _range(summary.lift_pp, summary.lift_ci_pp), _range(theirs.lift_pp, theirs.lift_ci_pp)),
        ("p", probability(summary.lift_p), probability(theirs.lift_p)),
        ("CR %", _share(summary.cr, summary.cr_ci), _share(theirs.cr, theirs.cr_ci)),
        ("Exact-query replay %", percent(summary.replay), percent(theirs.replay)),
        ("Cross-question retention %", percent(summary.retention), percent(theirs.retention)),
        ("Bare rerun %", percent(summary.rerun_floor), percent(theirs.rerun_floor)),
        ("Fixed / broke", f"{summary.fixed} / {summary.broke}", f"{theirs.fixed} / {theirs.broke}"),
        ("Cards, all seeds", str(summary.cards), str(theirs.cards)),
        (
            "Held-out pairs / databases",
            f"{summary.n_heldout} / {summary.n_databases}",
            f"{theirs.n_heldout} / {theirs.n_databases}",
        ),
    )
    rows += [*pairs, ("Comparisons, pp [95% CI]",)]
    mine = {one.key: one for one in findings(facts, ROSTER)}
    for plan in ROSTER[1:]:
        own, other = mine.get(plan.key), paper.by_key.get(plan.key)
        if own is None and other is None:
            continue
        ours = _range(own.found.delta_pp, (own.found.ci_low_pp, own.found.ci_high_pp)) if own else "not run"
        known = other and other.low_pp is not None and other.high_pp is not None
        ends = (other.low_pp, other.high_pp) if other and known else None
        published_one = _range(other.delta_pp, ends) if other else NONE
        if other and other.delta_pp is None and other.fixed is not None:
            published_one = f"fixed {other.fixed}, broke {other.broke}"
        rows.append((plan.name, ours, published_one))
    return Table(
        key="against-paper",
        title="This study beside the paper",
        columns=(
            "Quantity",
            f"This study ({summary.model}, {summary.benchmark})",
            f"Paper ({theirs.model}, {theirs.benchmark})",
        ),
        rows=tuple(rows),
        note="Different models, benchmarks and splits: read directions, not differences. This study's intervals are"
        " CR2 with databases for clusters, the paper's two-stage bootstrap.",
    )


def _range(value: float | None, ends: tuple[float | None, float | None] | None) -> str:
    return f"{points(value)} {interval(*ends)}" if value is not None and ends else points(value)


def _share(value: float | None, ends: tuple[float, float] | None) -> str:
    return f"{percent(value)} {interval(*ends, 0)}" if value is not None and ends else percent(value)
