"""The checker of Quarry finds the faults it looks for."""

import sqlite3
from pathlib import Path

import pytest

from sqlcrystal.benchmarks.quarry import QuarryQuestion
from sqlcrystal.benchmarks.quarry.check import check, template

GOLD = "SELECT COUNT(*) FROM jobs WHERE state = 'D'"
WRONG = ("SELECT COUNT(*) FROM jobs", "SELECT COUNT(*) FROM jobs WHERE state = 'done'")


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    file = tmp_path / "jobs.sqlite"
    connection = sqlite3.connect(file)
    connection.execute("CREATE TABLE jobs (id INTEGER PRIMARY KEY, state TEXT, hours REAL)")
    connection.executemany("INSERT INTO jobs VALUES (?, ?, ?)", [(1, "D", 0.1), (2, "D", 0.2), (3, "O", 0.2)])
    connection.commit()
    connection.close()
    return file


def entry(sql: str = GOLD, wrong: tuple[str, ...] = WRONG, difficulty: str = "simple") -> QuarryQuestion:
    return QuarryQuestion(id="jobs-01", text="How many jobs are done?", difficulty=difficulty, sql=sql, wrong=wrong)


def test_a_discriminating_question_has_no_problem(jobs: Path) -> None:
    assert check(entry(), jobs).problems == ()


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        (entry(sql="SELECT COUNT(*) FROM job"), "gold fails: no such table: job"),
        (entry(sql="SELECT id FROM jobs WHERE state = 'X'"), "gold is empty, NULL or zero"),
        (entry(sql="SELECT COUNT(*) FROM jobs WHERE state = 'X'", wrong=WRONG[:1] * 2), "gold is empty, NULL or zero"),
        (entry(sql="SELECT id FROM jobs LIMIT 1"), "gold depends on the order of unordered rows"),
        (entry(sql="SELECT id FROM jobs ORDER BY hours DESC LIMIT 1"), "gold's LIMIT cuts through a tie"),
        (
            entry(
                sql="SELECT state, COUNT(*) AS n FROM (SELECT * FROM jobs WHERE id > 1) GROUP BY 1 ORDER BY n LIMIT 1"
            ),
            "gold's LIMIT cuts through a tie",
        ),
        (
            entry(sql="SELECT state FROM jobs WHERE id = (SELECT id FROM jobs ORDER BY 0 - hours LIMIT 1)"),
            "gold's LIMIT cuts through a tie",
        ),
        (entry(difficulty="easy"), "difficulty 'easy' is none of simple, moderate, challenging"),
        (entry(wrong=WRONG[:1] * 2), "fewer than two wrong queries"),
        (entry(wrong=(*WRONG, "SELECT 2")), "wrong query 3 gives gold's set of rows"),
        (entry(wrong=(*WRONG, "SELECT")), "wrong query 3 fails"),
        (
            entry(sql="SELECT DISTINCT hours FROM jobs", wrong=("SELECT hours FROM jobs", WRONG[0])),
            "wrong query 1 gives gold's set of rows",
        ),
        (
            entry(sql="SELECT SUM(hours) FROM jobs WHERE state = 'D'", wrong=("SELECT 0.3", WRONG[0])),
            "wrong query 1 gives gold's set of rows",
        ),
    ],
)
def test_a_faulty_question_is_found_out(broken: QuarryQuestion, problem: str, jobs: Path) -> None:
    assert any(problem in complaint for complaint in check(broken, jobs).problems)


def test_a_limit_between_different_keys_is_no_problem(jobs: Path) -> None:
    for sql in ("SELECT id FROM jobs ORDER BY hours LIMIT 1", "SELECT id, hours AS h FROM jobs ORDER BY h, 1 LIMIT 2"):
        assert check(entry(sql=sql), jobs).problems == ()


def test_queries_that_differ_in_literals_only_share_a_template() -> None:
    assert template(GOLD) == template("select count(*) from jobs where state = 'O'")
    assert template(GOLD) != template(WRONG[0])
