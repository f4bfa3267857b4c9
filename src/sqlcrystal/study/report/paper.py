"""The paper's published figures as data: what a study's own figures are printed beside."""

from functools import cached_property, lru_cache
from importlib import resources

import msgspec
from msgspec import Struct

from sqlcrystal.study.report.table import Table


class Published(Struct, frozen=True, kw_only=True):
    """A comparison as the paper reports it; None where it gives no such figure."""

    key: str
    delta_pp: float | None = None
    low_pp: float | None = None
    high_pp: float | None = None
    p: str = ""
    fixed: int | None = None
    broke: int | None = None


class SeedFigures(Struct, frozen=True, kw_only=True):
    """The counts of one seed behind the headline."""

    seed: int
    n: int
    floor: int
    memory: int
    headroom: int


class Headline(Struct, frozen=True, kw_only=True):
    """The paper's headline; accuracies in percent."""

    benchmark: str
    model: str
    n_databases: int
    n_heldout: int
    seeds: tuple[int, ...]
    p0: float
    pm: float
    pk: float
    lift_pp: float
    lift_ci_pp: tuple[float, float]
    lift_p: float
    cr: float
    cr_ci: tuple[float, float]
    replay: float
    retention: float
    rerun_floor: float
    fixed: int
    broke: int
    cards: int


class PublishedTable(Struct, frozen=True, kw_only=True):
    """A table of the paper: its figures, in its order."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Paper(Struct, frozen=True, kw_only=True, dict=True):
    """Every figure the paper reports about its own system."""

    source: str
    headline: Headline
    seed: tuple[SeedFigures, ...]
    comparison: tuple[Published, ...]
    table: dict[str, PublishedTable]

    @cached_property
    def by_key(self) -> dict[str, Published]:
        """The comparisons by their key in the roster."""
        return {one.key: one for one in self.comparison}

    def tables(self) -> tuple[Table, ...]:
        """The paper's tables, ready to render."""
        return tuple(
            Table(key=f"paper-{key}", title=f"Paper: {one.title}", columns=one.columns, rows=one.rows)
            for key, one in self.table.items()
        )


@lru_cache(maxsize=1)
def published() -> Paper:
    """Read the published figures."""
    return msgspec.toml.decode(
        resources.files("sqlcrystal.study.report").joinpath("paper.toml").read_bytes(), type=Paper
    )
