"""Reading logs: every place where teams keep queries, and what of them no reader resolves."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from sqlcrystal.errors import DataError
from sqlcrystal.querylog.readers import Found, LoggedQuery, Reason, Refused, read_log, read_text

ONE = "SELECT name FROM item WHERE kind = 'HW'"


def queries(found: Iterable[Found]) -> list[tuple[str, int, str]]:
    return [(entry.sql, entry.uses, entry.place) for entry in found if isinstance(entry, LoggedQuery)]


def reasons(found: Iterable[Found]) -> list[tuple[Reason, str]]:
    return [(entry.reason, entry.place) for entry in found if isinstance(entry, Refused)]


def test_a_file_of_sql_is_cut_where_its_statements_end() -> None:
    text = (
        f"-- the first; of all\n{ONE};\n\nSELECT ';' AS mark,\n  'a;\nb' AS two FROM item;SELECT 3 FROM item; -- end\n"
        "SELECT 4 FROM item\n"
    )
    assert queries(read_text(text, "all.sql", "sqlite")) == [
        (f"-- the first; of all\n{ONE}", 1, "all.sql:1"),
        ("SELECT ';' AS mark,\n  'a;\nb' AS two FROM item", 1, "all.sql:4"),
        ("SELECT 3 FROM item", 1, "all.sql:4"),
        ("-- end\nSELECT 4 FROM item", 1, "all.sql:4"),
    ]


def test_a_statement_that_never_ends_and_one_of_ten_megabytes_cost_their_neighbours_nothing() -> None:
    long = "SELECT '" + "x" * 10_000_000 + "';\n"
    text = f"SELECT 'open FROM item;\n{ONE};\n{long}{ONE};\n"
    found = list(read_text(text, "hostile.sql", "sqlite"))
    assert [sql for sql, _, _ in queries(found)] == [ONE, ONE]
    assert reasons(found) == [(Reason.UNREADABLE, "hostile.sql:1"), (Reason.TOO_LONG, "hostile.sql:3")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("log.csv", f'Query,Calls\n"{ONE};","1,204"\n"SELECT 1",\n'),
        ("log.tsv", f"calls\tsql\n1204\t{ONE}\n\tSELECT 1\n"),
        ("semicolons.csv", f'query;calls\n"{ONE}";1204\nSELECT 1;\n'),
        ("lines.jsonl", f'{{"sql":"{ONE}","calls":1204}}\n{{"sql":"SELECT 1"}}\n'),
        ("lines.json", f'{{"sql":"{ONE}","calls":1204}}\n{{"sql":"SELECT 1"}}\n'),
        ("log.json", json.dumps([{"sql": ONE, "executions": 1204}, {"deep": [{"query": "SELECT 1"}]}])),
    ],
)
def test_a_table_or_an_export_brings_its_counts(name: str, text: str) -> None:
    assert [(sql, uses) for sql, uses, _ in queries(read_text(text, name, "sqlite"))] == [(ONE, 1204), ("SELECT 1", 1)]


def test_of_a_row_whose_sql_has_commas_outside_quotes_no_part_is_taken_for_a_query() -> None:
    found = list(
        read_text("query,calls\nSELECT name FROM item ORDER BY kind, price,3\n" + f'"{ONE}",2,\n', "a.csv", "")
    )
    assert reasons(found) == [(Reason.CELLS, "a.csv:2")]
    assert queries(found) == [(ONE, 2, "a.csv:3")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_file_is_read_in_the_letters_that_windows_writes_too(tmp_path: Path, encoding: str) -> None:
    sql = "SELECT name FROM item WHERE kind = 'Überzüge'"
    (tmp_path / "log.sql").write_bytes(f"{sql};\r\n{ONE};\r\n".encode(encoding))
    assert queries(read_log(tmp_path, "sqlite")) == [(sql, 1, "log.sql:1"), (ONE, 1, "log.sql:2")]


def test_metabase_variables_take_their_defaults_and_what_is_clicked_together_has_no_sql() -> None:
    native = {
        "query": "SELECT name FROM item WHERE kind = {{kind}} AND price > {{least}} [[AND id = {{id}}]] LIMIT {{n}}",
        "template-tags": {
            "kind": {"type": "text", "default": "it's"},
            "least": {"type": "number", "default": "5"},
            "id": {"type": "number"},
            "n": {"type": "number"},
        },
    }
    field = {"query": "SELECT 1 FROM item WHERE {{when}}", "template-tags": {"when": {"type": "dimension"}}}
    cards = [
        {"name": "By kind", "view_count": 7, "dataset_query": {"type": "native", "native": native}},
        {"name": "Clicked", "dataset_query": {"type": "query", "query": {"source-table": 3}}},
        {"name": "Filtered", "dataset_query": {"type": "native", "native": field}},
    ]
    found = list(read_text(json.dumps({"cards": cards}), "metabase.json", "sqlite"))
    assert queries(found) == [
        ("SELECT name FROM item WHERE kind = 'it''s' AND price > 5  LIMIT :n", 7, "metabase.json: By kind")
    ]
    assert reasons(found) == [(Reason.NO_SQL, "metabase.json: Clicked"), (Reason.TEMPLATE, "metabase.json: Filtered")]


def test_a_dbt_project_reads_its_database_where_ref_and_source_are_all_its_jinja(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "analyses").mkdir()
    (tmp_path / "target").mkdir()
    (tmp_path / "dbt_project.yml").write_text("name: shop\n")
    (tmp_path / "target" / "compiled.sql").write_text("SELECT 'not a model'")
    (tmp_path / "models" / "schema.yml").write_text(
        "sources:\n- name: raw\n  tables:\n  - name: items\n    identifier: item\n"
    )
    (tmp_path / "models" / "hardware.sql").write_text(
        "{{ config(materialized='view', alias='hw') }}\n{# kinds #}SELECT * FROM {{ source('raw', 'items') }}"
    )
    (tmp_path / "models" / "loop.sql").write_text("SELECT {% for x in xs %}{{ x }}{% endfor %} FROM item")
    (tmp_path / "analyses" / "count.sql").write_text("SELECT COUNT(*) FROM {{ ref('hardware') }}, {{ ref('p', 'q') }};")
    found = list(read_log(tmp_path, "sqlite"))
    assert queries(found) == [
        ("SELECT * FROM item", 1, "models/hardware.sql:2"),
        ("SELECT COUNT(*) FROM hw, q", 1, "analyses/count.sql:1"),
    ]
    assert reasons(found) == [(Reason.TEMPLATE, "models/loop.sql")]


def test_a_folder_is_read_file_by_file_and_what_is_no_log_is_counted(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one.sql").write_text(f"{ONE};")
    (tmp_path / "people.csv").write_text("name,age\nAda,36\n")
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "notes.md").write_text(ONE)
    found = list(read_log(tmp_path, "sqlite"))
    assert queries(found) == [(ONE, 1, "a/one.sql:1")]
    assert reasons(found) == [(Reason.NO_SQL, "broken.json"), (Reason.NO_SQL, "people.csv")]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("people.csv", "name,age\nAda,36\n", "no column of SQL; name one of them query, sql"),
        ("x.json", "{", "not JSON"),
        ("notes.md", "x", "choose a file ending in .sql"),
    ],
)
def test_a_file_that_is_no_log_is_one_line(name: str, text: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        list(read_text(text, name, "sqlite"))


def test_an_empty_folder_and_a_missing_file_are_one_line(tmp_path: Path) -> None:
    for path, said in ((tmp_path, "no file ending in"), (tmp_path / "no.sql", "cannot be read")):
        with pytest.raises(DataError, match=said):
            list(read_log(path, "sqlite"))
