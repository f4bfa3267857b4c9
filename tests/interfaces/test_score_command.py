"""`sqlcrystal score` and `benchmark` as a user runs them: a process, its streams, its exit code."""

import csv
import io
import json
import subprocess
from pathlib import Path

import pytest

import scoring_data

WRONG = ["SELECT 3", "SELECT name FROM pet LIMIT 2", "SELECT name FROM pet", "SELECT nome FROM shop"]


class Workspace:
    """A folder with the user's own benchmark, prediction files and a cache."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        scoring_data.make_own(folder / "own")
        self.good = self.write("good.jsonl", scoring_data.GOLDS)
        self.wrong = self.write("wrong.jsonl", WRONG)

    def write(self, name: str, sqls: list[str]) -> Path:
        (self.folder / name).write_text("".join(json.dumps({"sql": sql}) + "\n" for sql in sqls))
        return self.folder / name

    def run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        return scoring_data.run_cli(*arguments, cache=self.folder / "cache")

    def score(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        return self.run("score", *arguments, "--benchmark", "own", "--data", self.folder / "own")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def test_json_is_one_document_with_the_promised_keys(workspace: Workspace) -> None:
    done = workspace.score(workspace.wrong, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert {"benchmark", "rule", "n", "correct", "accuracy", "by_database", "by_difficulty", "by_kind"} <= set(report)
    assert (report["benchmark"], report["rule"], report["n"], report["correct"], report["accuracy"]) == (
        "own",
        "bird",
        4,
        3,
        75.0,
    )
    assert report["by_database"]["zoo"]["accuracy"] == 100.0
    assert report["by_difficulty"] == {
        "simple": {"n": 2, "correct": 2, "accuracy": 100.0, "scorable": 2, "accuracy_scorable": 100.0}
    }
    assert report["by_kind"]["prediction error"] == 1


def test_several_files_are_scored_in_one_command(workspace: Workspace) -> None:
    out = workspace.folder / "rows.csv"
    document = json.loads(
        workspace.score(workspace.good, workspace.wrong, "--rule", "bag", "--out", out, "--json").stdout
    )
    assert [(Path(scored["predictions"]).name, scored["accuracy"]) for scored in document["files"]] == [
        ("good.jsonl", 100.0),
        ("wrong.jsonl", 50.0),
    ]
    assert document["rule"] == "bag"
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert list(rows[0]) == ["question_id", "database", "verdict", "kind", "seconds", "sql", "error", "predictions"]
    assert [row["verdict"] for row in rows] == list("11111010")


def test_the_csv_has_one_row_per_question_and_the_table_is_readable(workspace: Workspace) -> None:
    out = workspace.folder / "rows.csv"
    done = workspace.score(workspace.wrong, "--out", out)
    assert done.returncode == 0
    assert "75.00" in done.stdout
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert list(rows[0]) == ["question_id", "database", "verdict", "kind", "seconds", "sql", "error"]
    assert [(row["question_id"], row["verdict"], row["kind"]) for row in rows] == [
        ("a", "1", "match"),
        ("b", "1", "match"),
        ("c", "1", "match"),
        ("d", "0", "prediction error"),
    ]
    assert all(float(row["seconds"]) >= 0 for row in rows)


def test_the_csv_says_what_was_predicted_and_why_it_failed(workspace: Workspace) -> None:
    out = workspace.folder / "rows.csv"
    workspace.score(workspace.write("mixed.jsonl", [WRONG[0], "", "SELECT nope\nFROM pet", WRONG[3]]), "--out", out)
    rows = list(csv.DictReader(io.StringIO(out.read_text(), newline="")))
    assert [row["sql"] for row in rows] == [WRONG[0], "", "SELECT nope\nFROM pet", WRONG[3]]
    assert [row["error"] for row in rows] == ["", "no prediction", "no such column: nope", "no such column: nome"]


def test_fenced_predictions_get_a_hint(workspace: Workspace) -> None:
    fenced = workspace.write("fenced.jsonl", [f"```sql\n{sql}\n```" for sql in scoring_data.GOLDS])
    done = workspace.score(fenced, "--json")
    assert done.returncode == 0
    assert "4 of 4 predictions" in done.stderr
    assert "score takes bare SQL" in done.stderr


def test_two_scored_files_are_compared_without_joining_them_by_hand(workspace: Workspace) -> None:
    for name in ("good", "wrong"):
        workspace.score(workspace.folder / f"{name}.jsonl", "--out", workspace.folder / f"{name}.csv")
    done = workspace.run("compare", workspace.folder / "good.csv", workspace.folder / "wrong.csv")
    assert done.returncode == 0
    assert "4 pairs, 4 questions, 2 databases\n" in done.stdout
    assert "seed" not in done.stdout
    comparison = json.loads(
        workspace.run("compare", workspace.folder / "good.csv", workspace.folder / "wrong.csv", "--json").stdout
    )
    assert (comparison["delta_pp"], comparison["fixed"], comparison["broke"], comparison["n_seeds"]) == (-25.0, 0, 1, 0)


def test_missing_databases_are_skipped_only_on_request_and_then_named(workspace: Workspace) -> None:
    (workspace.folder / "own" / "mall.sqlite").unlink()
    refused = workspace.score(workspace.good, "--json")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "mall; pass --skip-missing" in refused.stderr
    done = workspace.score(workspace.good, "--json", "--skip-missing")
    report = json.loads(done.stdout)
    assert (report["n"], report["left_out"], report["missing_databases"]) == (3, 1, ["mall"])
    assert done.stderr == "left out: 1 questions of 1 missing databases: mall\n"
    assert json.loads(workspace.score(workspace.good, "--json", "--database", "zoo").stdout)["n"] == 3


def spoil(workspace: Workspace, what: str) -> list[object]:
    """Break one thing; the arguments of the score command that meets it."""
    arguments: list[object] = [workspace.good]
    zoo = workspace.folder / "own" / "zoo" / "zoo.sqlite"
    questions = workspace.folder / "own" / "questions.jsonl"
    if what == "missing file":
        arguments = [workspace.folder / "nowhere.json"]
    elif what == "wrong json":
        (workspace.folder / "p.json").write_text('{"0": "SELECT 1",')
        arguments = [workspace.folder / "p.json"]
    elif what == "unknown database":
        (workspace.folder / "p.sql").write_text("SELECT 1\tfarm\n" * 4)
        arguments = [workspace.folder / "p.sql"]
    elif what == "count off":
        arguments = [workspace.write("short.jsonl", scoring_data.GOLDS[:3])]
    elif what == "not a database":
        zoo.write_bytes(b"<html>404</html>" * 100)
    elif what == "empty database":
        zoo.write_bytes(b"")
    elif what == "damaged database":
        zoo.write_bytes(zoo.read_bytes()[:4096] + b"\xff" * 4096)
    elif what == "predictions not utf-8":
        (workspace.folder / "p.sql").write_bytes(b"SELECT '\xe9'\n" * 4)
        arguments = [workspace.folder / "p.sql"]
    elif what == "questions not utf-8":
        questions.write_bytes(questions.read_bytes() + b"\xff\n")
    elif what == "a folder for a file":
        arguments = [workspace.folder]
    elif what == "unknown rule":
        arguments = [workspace.good, "--rule", "exact"]
    elif what == "no folder for the csv":
        arguments = [workspace.good, "--out", workspace.folder / "no" / "rows.csv"]
    return arguments


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("missing file", "nowhere.json: no such file"),
        ("wrong json", "p.json: not JSON (line 1, column 18"),
        ("unknown database", "unknown database 'farm'"),
        ("count off", "3 predictions, but own has 4 questions"),
        ("not a database", "zoo.sqlite is not a SQLite database"),
        ("empty database", "zoo.sqlite is empty"),
        ("damaged database", "zoo.sqlite"),
        ("predictions not utf-8", "p.sql: not UTF-8"),
        ("questions not utf-8", "questions.jsonl: not UTF-8"),
        ("a folder for a file", "cannot be read"),
        ("unknown rule", "rule: unknown value 'exact'; choose from bag, bird, instances, subset, test-suite"),
        ("no folder for the csv", "--out: there is no folder"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_2_and_loses_nothing(
    workspace: Workspace, what: str, message: str
) -> None:
    out = workspace.folder / "kept.csv"
    out.write_text("what was here before")
    arguments = spoil(workspace, what)
    if "--out" not in arguments:
        arguments += ["--out", out]
    done = workspace.score(*arguments, "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert out.read_text() == "what was here before"
    assert not list(workspace.folder.glob(".kept.csv.*"))


def test_benchmark_list_names_every_benchmark(workspace: Workspace) -> None:
    names = {benchmark["name"] for benchmark in json.loads(workspace.run("benchmark", "list", "--json").stdout)}
    assert {"quarry", "bird", "minidev", "minidev-postgresql", "spider", "own"} <= names
    assert "Spider dev" in workspace.run("benchmark", "list").stdout


def test_benchmark_check_reports_gold_per_database(workspace: Workspace) -> None:
    arguments = ("benchmark", "check", "own", "--data", workspace.folder / "own")
    report = json.loads(workspace.run(*arguments, "--json").stdout)
    assert (report["questions"], report["executed"], report["error"]) == (4, 4, 0)
    assert report["by_database"]["zoo"] == {
        "questions": 3,
        "executed": 3,
        "empty": 0,
        "zero": 0,
        "error": 0,
        "timeout": 0,
        "slow": 0,
        "equal_wrong": 0,
    }
    assert "slow" in workspace.run(*arguments).stdout


def test_an_unknown_benchmark_is_one_line_with_the_choices(workspace: Workspace) -> None:
    done = workspace.run("benchmark", "check", "brid")
    assert done.returncode == 2
    assert done.stderr.startswith("sqlcrystal: benchmark: unknown value 'brid'; choose from bird, ")
