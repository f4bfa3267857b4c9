"""Figures: the same bytes every time, ids of their own, and nothing drawn without arms."""

import re

import pytest

from sqlcrystal.study.report.drawing import INK, Figure, files, page_svgs
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.study.report.figures import all_figures
from sqlcrystal.study.report.table import Absent
from synthetic_ledger import synthetic_document, synthetic_facts, synthetic_ledger


def test_a_full_study_has_its_contrasts_first_and_then_the_papers_four_figures() -> None:
    assert [figure.key for figure in synthetic_document().figures] == [
        "contrasts",
        "exploratory",
        "crystallization",
        "mechanism",
        "decisions",
        "widths",
    ]


def test_every_caption_says_how_many_pairs_and_databases() -> None:
    for figure in synthetic_document().figures:
        assert "270 held-out question–seed pairs in 10 databases" in figure.caption


def test_a_figure_is_the_same_bytes_every_time() -> None:
    first = next(figure for figure in all_figures(synthetic_facts()) if figure.key == "mechanism")
    assert isinstance(first, Figure)
    once = files(first)
    assert once == files(first)
    assert once["png"].startswith(b"\x89PNG")
    assert once["pdf"].startswith(b"%PDF")


def test_inline_panels_share_no_id_and_take_the_pages_ink() -> None:
    panels = [svg for figure in synthetic_document().figures for svg in page_svgs(figure)]
    ids = [identifier for svg in panels for identifier in re.findall(r'\bid="([^"]+)"', svg)]
    assert len(panels) == sum(len(figure.panels) for figure in synthetic_document().figures)
    assert len(ids) == len(set(ids))
    assert all(INK not in svg and "currentColor" in svg and "<script" not in svg for svg in panels)


@pytest.mark.parametrize("key", ["mechanism", "decisions", "widths"])
def test_a_figure_without_arms_is_left_out_and_says_what_it_needs(key: str) -> None:
    drawn = {figure.key: figure for figure in all_figures(Facts(synthetic_ledger(only=("none", "W0"))))}
    assert isinstance(drawn["crystallization"], Figure)
    assert isinstance(drawn[key], Absent)
