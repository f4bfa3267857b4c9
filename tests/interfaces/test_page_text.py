"""What the page makes of rows and texts: which chart, which tile, which words are marked, two texts side by side."""

from typing import Any

import pytest

from sqlcrystal.interfaces.web.beside import side_by_side
from sqlcrystal.interfaces.web.tables import TableView, charts
from sqlcrystal.interfaces.web.text import (
    coloured,
    complained_of,
    filtered_on,
    heading,
    literals_holding,
    number_words,
    show_cell,
)

MONTHS = [(f"2012-{month:02d}", 10.0 * month, month) for month in range(1, 13)]


def drawn(columns: list[str], rows: list[Any], *, truncated: bool = False) -> str:
    """The ways that the rows may be drawn in; only a line is drawn as one."""
    found = charts(columns, rows, truncated=truncated)
    assert [way for way, markup in found.items() if "<polyline" in markup] == [way for way in found if way == "line"]
    return " ".join(found)


@pytest.mark.parametrize(
    ("columns", "rows", "kind"),
    [
        (["artist", "sales"], [("U2", 3.5), ("Queen", 2)], "bars"),
        (["month", "sales", "pieces"], MONTHS, "line"),
        (["year", "sales"], [(2010, 1.0), (2011, 2.0), (2012, 1.5)], "line bars"),
        (["month", "sales"], [(10, 1.0), (9, 2.0), (11, 1.5)], "line bars"),
        (["month", "sales"], [(10, 1.0), (99, 2.0), (11, 1.5)], ""),
        (["year", "sales"], [(2010, 1.0), (2011, 2.0)], "bars"),
        (["artist", "id"], [("U2", 1), ("Queen", 2)], ""),
        (["artist", "year"], [("U2", 1999), ("Queen", 2000)], ""),
        (["artist", "sales"], [("U2", 1), ("U2", 2)], ""),
        (["artist", "city", "sales"], [("U2", "Dublin", 1), ("Queen", "London", 2)], ""),
        (["artist", "sales"], [("U2", 1)], ""),
        (["artist", "sales"], [("U2", 1), ("Queen", None)], ""),
        (["artist", "sales"], [(f"artist {number}", number) for number in range(31)], ""),
    ],
)
def test_rows_get_the_chart_that_suits_them(columns: list[str], rows: list[Any], kind: str) -> None:
    assert drawn(columns, rows) == kind


def test_rows_that_are_not_all_here_get_no_chart() -> None:
    assert not drawn(["artist", "sales"], [("U2", 3.5), ("Queen", 2)], truncated=True)


def test_several_lines_have_a_legend_and_a_phone_has_a_drawing_of_its_own() -> None:
    found = str(charts(["month", "sales", "pieces"], MONTHS, truncated=False)["line"])
    assert found.count("<svg") == 2
    assert 'width="332"' in found
    assert ">sales</text>" in found
    assert ">pieces</text>" in found


@pytest.mark.parametrize(
    ("columns", "row", "count"),
    [(["n"], (3,), 1), (["low", "high"], (1, 2.5), 2), (["id"], (3,), 0), (["name"], ("x",), 0), (["n"], (None,), 0)],
)
def test_only_measures_become_tiles(columns: list[str], row: tuple[Any, ...], count: int) -> None:
    assert len(TableView(columns=columns, rows=[row], row_count=1).tiles) == count


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (33.65999999999998, "33.66"),
        (142, "142"),
        (9999, "9999"),
        (1234567, "1,234,567"),
        (-12345.5, "-12,345.5"),
        (195.0, "195"),
        (0.0123456, "0.01235"),
        (1e-9, "1e-09"),
        (52.520008, "52.52"),
        (float("inf"), "inf"),
    ],
)
def test_a_measure_is_written_for_people(value: float, shown: str) -> None:
    assert number_words(value) == shown


def test_an_id_or_year_keeps_its_digits_and_every_number_its_exact_value_beside() -> None:
    assert show_cell(20241118).text == "20241118"
    assert show_cell(33.65999999999998) == ("33.66", "", "number", "33.65999999999998")
    assert show_cell(7).exact == ""


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("COUNT(*)", "Count"),
        ("avg(T1.gross)", "Average of gross"),
        ("COUNT(DISTINCT T1.name)", "Count of different name"),
        ("ROUND(AVG(x), 2)", "ROUND(AVG(x), 2)"),
        ("employee_count", "employee_count"),
    ],
)
def test_a_bare_function_call_is_no_heading(column: str, words: str) -> None:
    assert heading(column) == words


def test_a_line_that_does_not_begin_at_zero_shows_it_and_its_points_tell_their_value() -> None:
    high = charts(["year", "sales"], [(2012, 110.5), (2010, 100.0), (2011, 120.0)], truncated=False)
    assert "does not begin at 0" in high["line"]
    assert 'class="break"' in high["line"]
    assert ">2012: 110.5</text>" in high["line"]
    assert high["line"].index(">2010: 100.0<") < high["line"].index(">2012: 110.5<")
    assert "does not begin at 0" not in high["bars"]
    for sales in ((0.0, 2.0, 1.5), (0.1, 2.0, 1.5)):  # an axis that comes near 0 begins there
        from_zero = charts(["year", "sales"], [*zip((2010, 2011, 2012), sales, strict=True)], truncated=False)
        assert "does not begin at 0" not in from_zero["line"]


def test_every_step_of_a_line_is_named_where_the_names_fit_and_else_its_ends() -> None:
    few = charts(["year", "sales"], [(year, year - 2000.0) for year in range(2010, 2014)], truncated=False)["line"]
    many = charts(["year", "sales"], [(year, year - 1900.0) for year in range(1950, 2020)], truncated=False)["line"]
    assert [f">{year}</text>" in few for year in range(2010, 2014)] == [True] * 4
    assert [f">{year}</text>" in many for year in (1950, 1951, 2019)] == [True, False, True]


def test_the_largest_of_one_measure_is_named_unless_two_share_it() -> None:
    rows = [("dispatcher", 27), ("sales agent", 28)]
    table = TableView(columns=["job_title", "COUNT(*)"], rows=rows, row_count=2)
    assert table.leader == "sales agent has the highest Count, 28"
    assert TableView(columns=["job_title", "n"], rows=[("a", 2), ("b", 2)], row_count=2).leader == ""
    assert TableView(columns=["job_title", "n"], rows=rows, row_count=200).leader == ""


def test_marks_are_whole_words_and_stay_text() -> None:
    assert coloured("SELECT kind, kinds", ["kind"]) == '<span class="k">SELECT</span> <mark>kind</mark>, kinds'
    assert "<mark>&#39;&lt;b&gt;&#39;</mark>" in coloured("SELECT '<b>'", ["'<b>'"])


def test_the_name_an_engine_complains_of_is_found_in_the_query() -> None:
    assert complained_of("SELECT colour FROM item", "no such column: colour") == ["colour"]
    assert complained_of("SELECT 1 FROM FROM item", 'near "FROM": syntax error') == []


def test_literals_of_conditions_are_told_and_those_that_hold_a_value_found() -> None:
    sql = "SELECT 'x' FROM item WHERE kind = 'HW' AND price > 5 LIMIT 9"
    assert filtered_on(sql, "sqlite") == ["'HW'", "5"]
    assert literals_holding("SELECT 1 WHERE day LIKE '2012%'", ["2012"]) == ["'2012%'"]


def test_two_texts_stand_side_by_side_with_gaps_where_one_has_no_line() -> None:
    rows = side_by_side("a\nb\nd", "a\nc\nc2\nd")
    assert [(row.before and row.before.text, row.after and row.after.text) for row in rows] == [
        ("a", "a"),
        ("b", "c"),
        (None, "c2"),
        ("d", "d"),
    ]
