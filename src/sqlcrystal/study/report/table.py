"""A table as a value, with its specification and the wording of its cells: name, maker, needs, and figures in words."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import isfinite

from msgspec import Struct

from sqlcrystal.acquisition.from_log import FromLog
from sqlcrystal.assembly import REGIMES, RETRIEVERS, SOLVERS, SOURCES, WRITERS
from sqlcrystal.ledger.records import Arm
from sqlcrystal.measurement.comparison import Comparison
from sqlcrystal.measurement.settings import RatioEstimate
from sqlcrystal.study.report.facts import FACTORS, Facts

Cells = tuple[str, ...]


class Body(Struct, frozen=True, kw_only=True):
    """A table as its builder makes it: ready-made text; a row of one cell is a heading that spans the table."""

    columns: Cells
    rows: tuple[Cells, ...]
    note: str = ""


class ReportTable(Struct, frozen=True, kw_only=True):
    """A table with its name; every format renders this and nothing else."""

    key: str
    title: str
    columns: Cells
    rows: tuple[Cells, ...]
    note: str = ""
    folded: bool = False
    """True if a page shows it closed: audits, and what only a second look needs."""


class Absent(Struct, frozen=True, kw_only=True):
    """A table or figure that cannot be made, and what it would need."""

    key: str
    title: str
    needs: str
    """Empty for what only a few studies ask for: the others do not lack it."""


@dataclass(frozen=True)
class TableSpec:
    """One table of the report: made from one run, or across several; a builder without material returns None."""

    key: str
    title: str
    needs: str
    of_run: "Callable[[Facts], Body | None] | None" = None
    across: "Callable[[Sequence[Facts]], Body | None] | None" = None
    folded: bool = False
    paper: str = field(default="")
    """The label of the paper's table it answers to; empty for what the paper says in words, or not at all."""

    def make(self, runs: "Sequence[Facts]") -> ReportTable | Absent:
        """The table, or what it would need."""
        body = self.of_run(runs[0]) if self.of_run else self.across(runs) if self.across else None
        if body is None or not body.rows:
            return Absent(key=self.key, title=self.title.format(split=runs[0].split), needs=self.needs)
        return ReportTable(
            key=self.key,
            title=self.title.format(split=runs[0].split),
            columns=body.columns,
            rows=body.rows,
            note=body.note,
            folded=self.folded,
        )


NUMERIC = re.compile(r"[+−<]?[\d.,]+( ?%| ?pp|M|K|×)?|—|[+−]?[\d.,]+( ?/ ?[+−]?[\d.,]+)+")


def numeric_columns(table: ReportTable) -> tuple[bool, ...]:
    """Tell which columns hold figures and are set flush right."""
    body = [row for row in table.rows if len(row) == len(table.columns)]
    return tuple(
        bool(body) and all(NUMERIC.fullmatch(row[index]) or not row[index] for row in body)
        for index in range(len(table.columns))
    )


NONE = "—"
METHOD_NAMES = {"cr2": "CR2", "jackknife": "jackknife", "two-stage": "two-stage bootstrap"}


def percent(value: float | None, digits: int = 1) -> str:
    """An accuracy or share, in percent, without the sign."""
    return NONE if value is None or not isfinite(value) else f"{value:.{digits}f}".replace("-", "−")


def points(value: float | None, digits: int = 2) -> str:
    """A difference in percentage points, always signed."""
    if value is None or not isfinite(value):
        return NONE
    shown = f"{value:+.{digits}f}"
    return shown.replace("-", "−") if float(shown) else shown.lstrip("+-")


def interval(low: float | None, high: float | None, digits: int = 2) -> str:
    """A signed interval."""
    if low is None or high is None or not (isfinite(low) and isfinite(high)):
        return NONE
    return f"[{points(low, digits)}, {points(high, digits)}]"


def judged(result: Comparison) -> str:
    """The interval and p of a difference; where databases give none, the reason, and what the questions alone say."""
    if result.p_value is not None:
        return f"95% interval {interval(result.ci_low_pp, result.ci_high_pp)}, p {probability(result.p_value)}"
    alone = result.question_level
    if alone is None or alone.p_value is None:
        return f"{result.undefined}; {alone.undefined}" if alone else result.undefined
    ends = f"{interval(alone.low, alone.high)}, p {probability(alone.p_value)}"
    return f"{result.undefined}; question-level, for these databases only: {ends}"


def kept_ratios(estimate: RatioEstimate) -> str:
    """The interval of a ratio, which may be unbounded, and how many resamples had no ratio at all."""
    between = interval(estimate.low, estimate.high, 1)
    words = {
        "bounded": f"95% interval {between}",
        "outside": f"95% interval unbounded: anything outside {between}",
        "unbounded": "95% interval unbounded: the headroom cannot be told from zero",
    }.get(estimate.shape, estimate.undefined)
    share = estimate.undefined_share
    return f"{words}; undefined in {100 * share:.1f}% of resamples" if share else words


def probability(value: float | None) -> str:
    """A p-value as journals print it: no leading zero, never zero."""
    if value is None or not isfinite(value):
        return NONE
    if value < 0.0001:
        return "<.0001"
    return f"{value:.4f}".lstrip("0") if value < 0.01 else f"{value:.3f}".lstrip("0") if value < 0.9995 else "1"


def number(value: float | None, digits: int = 0) -> str:
    """A count, with thin groups of thousands."""
    return NONE if value is None or not isfinite(value) else f"{value:,.{digits}f}"


def per_seed(values: Iterable[float | None], digits: int = 1) -> str:
    """One figure per seed, separated by slashes, in the order of the seeds."""
    return "/".join(
        percent(value, digits) if value is None or value >= 0 else points(value, digits) for value in values
    )


def plural(count: int, word: str) -> str:
    """A count with its noun."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def listed(items: Iterable[str]) -> str:
    """Items as a sentence lists them."""
    words = list(items)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""


OWN_FORM = "T3-look"


def _bank(value: str) -> str:
    if value == "full":
        return "the full bank"
    if value.endswith("%"):
        return f"{value} of the bank"
    if value.startswith("retire:"):
        return f"bank of {value.removeprefix('retire:')} without the cards that harmed questions of its collection"
    _, arm, draw = value.split(":")
    return f"bank cut to the card counts of {arm}, draw {draw}"


def _log(value: str) -> str:
    share = value.removeprefix("log").removeprefix(":")
    bad = f", {share} of them wrong or stale" if share else ""
    return f"{FromLog.summary}{bad}" if value.startswith("log") else value


WORDS: dict[str, Callable[[str], str]] = {
    "source": lambda value: f"episodes from {SOURCES[value].summary if value in SOURCES else _log(value)}",
    "admission": lambda value: (
        REGIMES[value].summary if value in REGIMES else f"the check errs in {value.removeprefix('noisy:')} of cases"
    ),
    "writer": lambda value: f"card = {WRITERS[value].summary if value in WRITERS else value}",
    "retriever": lambda value: RETRIEVERS[value].summary if value in RETRIEVERS else f"cards by {value}",
    "k": lambda value: f"up to {plural(int(value), 'card')} in the prompt",
    "correspondence": lambda value: (
        "every SQL under another question" if value == "permuted" else "SQL under its own question"
    ),
    "bank": _bank,
    "solver": lambda value: SOLVERS[value].summary if value in SOLVERS else value.replace("-", " "),
    "definitions": lambda value: "definitions beside the question" if value == str(True) else "no definitions",
    "passes": lambda value: plural(int(value), "collection pass").replace("passs", "passes"),
}


def described(facts: Facts, arm: Arm) -> str:
    """An arm in words: all of the default's choices, and of another arm what it changes against the default."""
    if arm is facts.default:
        kept = ("source", "admission", "writer", "retriever", "k")
        return "; ".join(WORDS[factor](str(getattr(arm, factor))) for factor in kept)
    if not arm.remembers:
        also = [
            factor for factor in ("solver", "definitions") if getattr(arm, factor) != getattr(facts.default, factor)
        ]
        return "; ".join(["no cards", *(WORDS[factor](str(getattr(arm, factor))) for factor in also)])
    changed = [factor for factor in FACTORS if getattr(arm, factor) != getattr(facts.default, factor)]
    return "; ".join(WORDS[factor](str(getattr(arm, factor))) for factor in changed)


def source_note(facts: Facts) -> str:
    """A sentence where the default's episodes do not come from the paper's own procedure."""
    if facts.default.source != OWN_FORM:
        return ""
    own = next((arm.name for arm in facts.arms.values() if arm.source == "T3"), "")
    beside = f"; the paper's procedure is the arm {own}" if own else ""
    return f"Episodes come from {OWN_FORM}, our form of the paper's T3 for small models{beside}."
