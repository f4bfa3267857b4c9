"""Acquisition tells its story: what each source may see, spends and leaves in the trace."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shop import PROBE, QUESTION, RIGHT, SCHEMA, WRONG, fenced, repairing, right
from sqlcrystal.acquisition.explore import Explore, Exploring
from sqlcrystal.acquisition.repair import FirstTry, Resample, SelfVote, clip, elect
from sqlcrystal.acquisition.revision import PROBE_CLOSING, LookFirst, OneBit, Probing, Union, cap, look, suspects
from sqlcrystal.errors import ModelRejected
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.protocols import Database
from sqlcrystal.solving.solver import SingleShot
from sqlcrystal.types import Attempt, Failure, FailureKind, Message, Probe, Rows, Sampling

OTHER = "SELECT COUNT(*) FROM item WHERE kind = 'hw'"


def attempt_with(database: Database, sql: str | None) -> Attempt:
    reply = fenced(sql) if sql else "I do not know."
    return SingleShot(ScriptedModel([reply]), database).solve(QUESTION)


def samples(by_index: dict[int, str]) -> Callable[[Sequence[Message], Sampling], str]:
    return lambda _, sampling: fenced(by_index.get(sampling.index, WRONG))


# ── T1 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_t1_asks_the_solve_prompt_again_and_gets_no_feedback(shop: Database) -> None:
    model = ScriptedModel(samples({3: RIGHT}))
    attempt = attempt_with(shop, WRONG)
    episode = Resample(model, shop).acquire(attempt, right=False, accept=right).episode
    assert episode is not None
    assert (episode.source, episode.sql) == ("T1", RIGHT)
    assert [r.accepted for r in episode.rounds] == [False, False, True]
    assert set(model.prompts) == {attempt.call.messages}
    assert [(s.temperature, s.index, s.max_tokens) for s in model.samplings] == [(0.8, n, 2048) for n in (1, 2, 3)]


# ── T2 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_t2_learns_only_that_the_previous_sql_was_wrong(shop: Database) -> None:
    second = "SELECT COUNT(*) FROM item"
    model = ScriptedModel([fenced(second), fenced(RIGHT)])
    episode = OneBit(model, shop).acquire(attempt_with(shop, WRONG), right=False, accept=right).episode
    assert episode is not None
    assert episode.sql == RIGHT
    systems = {prompt[0].content for prompt in model.prompts}
    assert systems == {"You are correcting a SQLite query. Output ONE corrected query."}
    for prompt, previous in zip(model.prompts, (WRONG, second), strict=True):
        assert prompt[1].content == (
            f"[Database schema]\n{SCHEMA}\n"
            "[Question]\nHow many hardware items are there?\nHint: hardware is a kind\n"
            f"[Previous SQL]\n```sql\n{previous}\n```\n"
            "The previous SQL did not answer the question correctly. Please revise it.\n"
            "Write the corrected SQLite query now, inside a ```sql block."
        )
    assert all(s.temperature == 0 for s in model.samplings)


# ── T3 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

SCHEMA_SECTION = f"[Database schema]\n{SCHEMA}\n"
QUESTION_SECTION = "[Question]\nHow many hardware items are there?\nHint: hardware is a kind\n"


def test_t3_proposes_probes_sees_its_sql_and_the_reports_and_revises_in_every_round(shop: Database) -> None:
    """The paper's story: wrong, probe, still wrong, probe again with all that was seen, right."""
    second = "SELECT COUNT(*) FROM item WHERE kind = 'hw'"
    another = "SELECT price FROM item WHERE name = 'Tea'"
    model = ScriptedModel([fenced(PROBE), fenced(second), fenced(another), fenced(RIGHT)])
    episode = Probing(model, shop).acquire(attempt_with(shop, WRONG), right=False, accept=right).episode
    assert episode is not None
    assert (episode.source, episode.sql) == ("T3", RIGHT)
    assert [[call.purpose for call in spent.calls] for spent in episode.rounds] == [["probe", "revise"]] * 2
    assert [[probe.sql for probe in spent.probes] for spent in episode.rounds] == [[PROBE], [another]]
    revised = [user.content for system, user in model.prompts if "correcting" in system.content]
    assert WRONG in revised[0]
    assert second in revised[1]
    assert "- item.kind holds 'HW', 'FD'.\n- SELECT price FROM item WHERE name = 'Tea' -> 450\n" in revised[1]


def test_t3_speaks_the_papers_prompts(shop: Database) -> None:
    model = ScriptedModel([fenced(PROBE), fenced(RIGHT)])
    Probing(model, shop).acquire(attempt_with(shop, WRONG), right=False, accept=right)
    (probe_system, probe_user), (revise_system, revise_user) = model.prompts
    situation = (
        f"{SCHEMA_SECTION}{QUESTION_SECTION}[Previous SQL]\n```sql\n{WRONG}\n```\n[What it returned]\nCOUNT(*)\n0\n"
    )
    assert probe_system.content == (
        "You are debugging a SQLite query judged INCORRECT. You do NOT have the correct answer -- only that your "
        "query is wrong. Diagnose by interrogating the DB with small READ-ONLY probe queries."
    )
    assert probe_user.content == (
        f"{situation}Propose 1-4 READ-ONLY SQLite probe queries that would reveal your mistake, such as the DISTINCT "
        "values of a column you filter on or a few rows of a table you read. "
        "Output EACH probe in its own ```sql block. Do not write the final answer yet."
    )
    assert revise_system.content == (
        "You are correcting a SQLite query. Use what the DB probes revealed to fix the specific mistake. "
        "You still cannot see the correct answer. Output ONE corrected query."
    )
    assert revise_user.content == (
        f"{situation}[Database probes and what they revealed]\n- item.kind holds 'HW', 'FD'.\n"
        "Write the corrected SQLite query now, inside a ```sql block."
    )


def test_t3_gives_its_probes_as_many_tokens_as_its_answers(shop: Database) -> None:
    model = ScriptedModel([fenced(PROBE), fenced(RIGHT)])
    Probing(model, shop).acquire(attempt_with(shop, WRONG), right=False, accept=right)
    assert {sampling.max_tokens for sampling in model.samplings} == {2048}


# ── T3-look ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_t3_look_looks_revises_and_the_whole_round_is_in_the_trace(shop: Database) -> None:
    model = ScriptedModel([fenced(RIGHT)])
    episode = LookFirst(model, shop).acquire(attempt_with(shop, WRONG), right=False, accept=right).episode
    assert episode is not None
    [only] = episode.rounds
    assert (episode.sql, only.sql, only.accepted) == (RIGHT, RIGHT, True)
    assert tuple(model.prompts) == tuple(call.messages for call in only.calls)
    assert only.probes[0].sql == PROBE
    assert isinstance(only.probes[0].execution, Rows)
    assert only.probes[0].execution.rows == (("HW",), ("FD",))
    assert isinstance(only.execution, Rows)
    assert only.execution.rows == ((2,),)


def test_t3_look_asks_for_the_models_probes_from_the_second_round_on_and_remembers_what_it_saw(shop: Database) -> None:
    model = ScriptedModel([fenced(OTHER), fenced("SELECT price FROM item WHERE name = 'Tea'"), fenced(RIGHT)])
    episode = LookFirst(model, shop).acquire(attempt_with(shop, WRONG), right=False, accept=right).episode
    assert episode is not None
    assert [[call.purpose for call in spent.calls] for spent in episode.rounds] == [["revise"], ["probe", "revise"]]
    assert "- item.kind holds 'HW', 'FD'.\n- SELECT price FROM item WHERE name = 'Tea' -> 450\n" in (
        model.prompts[2][1].content
    )


def test_t3_look_keeps_the_papers_words_where_it_can(shop: Database) -> None:
    model = ScriptedModel([fenced(OTHER), fenced("SELECT 1"), fenced(RIGHT)])
    LookFirst(model, shop).acquire(attempt_with(shop, WRONG), right=False, accept=right)
    (revise_system, revise_user), (probe_system, probe_user), _ = model.prompts
    schema, question = (
        f"[Database schema]\n{SCHEMA}\n",
        "[Question]\nHow many hardware items are there?\nHint: hardware is a kind\n",
    )
    assert revise_system.content == (
        "You are correcting a SQLite query. Use what the DB probes revealed to fix the specific mistake. "
        "You still cannot see the correct answer. Output ONE corrected query."
    )
    assert revise_user.content == (
        f"{schema}[Database probes and what they revealed]\n- item.kind holds 'HW', 'FD'.\n{question}"
        "Use the values as they are stored. Write the corrected SQLite query now, inside a ```sql block."
    )
    assert probe_system.content == (
        "You are debugging a SQLite query judged INCORRECT. You do NOT have the correct answer -- only that your "
        "query is wrong. Diagnose by interrogating the DB with small READ-ONLY probe queries."
    )
    assert probe_user.content == (
        f"{schema}{question}[Previous SQL]\n```sql\n{OTHER}\n```\n[What it returned]\nCOUNT(*)\n0\n"
        "Propose 1-4 READ-ONLY SQLite probe queries that would reveal your mistake, such as the DISTINCT values of a "
        "column you filter on or a few rows of a table you read. "
        "Output EACH probe in its own ```sql block. Do not write the final answer yet."
    )


def test_the_words_that_the_paper_does_not_print_stand_in_the_docs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "sources.md").read_text(encoding="utf-8")
    ours = PROBE_CLOSING.partition("your mistake, ")[2].partition(" Output EACH")[0]
    assert f"*{ours}*" in " ".join(page.split())


def test_the_revision_is_not_shown_the_wrong_query_which_a_small_model_would_copy(shop: Database) -> None:
    tries = iter(f"SELECT COUNT(*) FROM item WHERE kind = 'hardware' AND price > {number}" for number in range(9))
    model = ScriptedModel(lambda messages, _: fenced("SELECT 1" if "debugging" in messages[0].content else next(tries)))
    LookFirst(model, shop).acquire(attempt_with(shop, WRONG), right=False, accept=right)
    revisions = [user.content for system, user in model.prompts if "correcting" in system.content]
    assert len(revisions) == 3
    assert not any("hardware'" in told for told in revisions)


@pytest.mark.parametrize("source", [OneBit, LookFirst])
def test_a_repair_ends_when_it_proposes_what_was_tried_before(
    source: type[OneBit] | type[LookFirst], shop: Database
) -> None:
    model = ScriptedModel(lambda *_: fenced(f"{WRONG.lower()} ;"))
    effort = source(model, shop).acquire(attempt_with(shop, WRONG), right=False, accept=right)
    assert len(effort.rounds) == len(model.prompts) == 1


def test_a_revision_is_told_why_the_query_failed(shop: Database) -> None:
    model = ScriptedModel([fenced("SELECT 1"), fenced(RIGHT)])
    LookFirst(model, shop).acquire(attempt_with(shop, "SELECT cost FROM item"), right=False, accept=right)
    told = "revealed]\n- A query failed: no such column: cost\n- No table has a column cost.\n- SELECT 1 -> 1\n"
    assert told in model.prompts[1][1].content


def test_t3_runs_at_most_four_probes_and_reports_errors_as_findings(shop: Database) -> None:
    reply = fenced("SELECT nope FROM item", "DROP TABLE item", "SELECT 1", "SELECT 2", "SELECT 3", "SELECT 4")
    probes = look(shop, reply)
    assert [p.sql for p in probes] == ["SELECT nope FROM item", "SELECT 1", "SELECT 2", "SELECT 3"]
    assert isinstance(probes[0].execution, Failure)


def test_a_probe_that_would_return_many_rows_is_capped_not_refused(shop: Database) -> None:
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) SELECT i FROM n"
    for sql in (many, f"{many} LIMIT 400", f"{many} -- all of them"):
        [probe] = look(shop, fenced(sql))
        assert isinstance(probe.execution, Rows), probe.execution
        assert len(probe.execution.rows) == 11


@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "mysql", "mariadb", "duckdb"])
def test_the_cap_keeps_a_short_limit_and_unparsable_sql_as_they_are(dialect: str) -> None:
    for sql in ("SELECT 1 LIMIT 3", "SELECT 1 LIMIT 1e3", "SELECT 1 LIMIT 5 + 5", "SELECT FROM WHERE"):
        assert cap(sql, dialect) == sql
    assert cap("SELECT a FROM t UNION SELECT b FROM u", dialect).endswith("LIMIT 11")


def test_t3_goes_on_when_the_reply_holds_no_probe_and_the_attempt_no_sql(shop: Database) -> None:
    model = ScriptedModel(["no idea", "still none", "no idea", fenced(RIGHT)])
    episode = Probing(model, shop).acquire(attempt_with(shop, None), right=False, accept=right).episode
    assert episode is not None
    assert [r.sql for r in episode.rounds] == [None, RIGHT]
    assert "(the reply held no SQL)" in model.prompts[0][1].content
    assert "(no probe could be read from the reply)" in model.prompts[1][1].content


TWO_TABLES = f"{SCHEMA}\nCREATE TABLE sale (id INTEGER PRIMARY KEY, item_id INTEGER, day TEXT);"
KEYED = """
CREATE TABLE Artist (ArtistId INTEGER PRIMARY KEY, Name TEXT);
CREATE TABLE Album (AlbumId INTEGER PRIMARY KEY, ArtistId INTEGER REFERENCES Artist (ArtistId), Title TEXT);
CREATE TABLE Track (TrackId INTEGER PRIMARY KEY, AlbumId INTEGER, Genre TEXT, Composer TEXT,
    FOREIGN KEY (AlbumId) REFERENCES Album);
"""


@pytest.mark.parametrize(
    ("sql", "probes"),
    [
        ("SELECT COUNT(*) FROM item WHERE kind = 'x'", ["SELECT DISTINCT kind FROM item"]),
        (
            "SELECT i.name FROM item i JOIN sale s ON s.item_id = i.id WHERE s.day > '2024'",
            ["SELECT DISTINCT day FROM sale"],
        ),
        (
            "SELECT AVG(price) FROM item WHERE kind IS NOT NULL",
            ["SELECT DISTINCT kind FROM item", "SELECT DISTINCT price FROM item"],
        ),
        (
            "SELECT COUNT(id) FROM sale WHERE item_id = (SELECT id FROM item WHERE name = 'Tea')",
            ["SELECT DISTINCT name FROM item"],
        ),
        ("SELECT COUNT(*) FROM sale WHERE kind = 'x'", ["SELECT DISTINCT kind FROM item"]),
        ("SELECT name FROM item", []),
        ("not sql (", []),
    ],
)
def test_the_suspects_are_the_columns_a_query_leans_on_wherever_they_stand(sql: str, probes: list[str]) -> None:
    assert list(suspects(sql, TWO_TABLES, "sqlite").probes) == probes


def test_only_a_column_that_the_named_table_lacks_is_misplaced() -> None:
    sql = "SELECT s.name, i.price, s.nowhere FROM sale s JOIN item i ON i.id = s.item_id"
    assert suspects(sql, TWO_TABLES, "sqlite").misplaced == (
        "name is a column of item, not of sale.",
        "No table has a column nowhere.",
    )


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        (
            "SELECT COUNT(*) FROM Track WHERE Name = 'Metallica'",
            "Name is a column of artist, not of track:"
            " join it ON Track.AlbumId = Album.AlbumId AND Album.ArtistId = Artist.ArtistId.",
        ),
        (
            "SELECT t.Title FROM Track t",
            "Title is a column of album, not of track: join it ON Track.AlbumId = Album.AlbumId.",
        ),
        ("SELECT Composr FROM Track", "No table has a column Composr; there is track.composer."),
    ],
)
def test_a_repair_is_told_where_a_missing_column_stands_and_which_keys_join_it(sql: str, told: str) -> None:
    assert suspects(sql, KEYED, "sqlite").misplaced == (told,)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM Track WHERE AlbumId IN (SELECT AlbumId FROM Album JOIN Artist USING (ArtistId)"
        " WHERE Name = 'Metallica')",
        "SELECT Genre, COUNT(*) AS n FROM Track GROUP BY Genre ORDER BY n DESC",
        "WITH t AS (SELECT COUNT(*) AS n FROM Track) SELECT n, whatever FROM t",
        'SELECT Genre FROM Track WHERE Genre = "Rock"',
    ],
)
def test_columns_of_nested_queries_aliases_and_quoted_texts_are_not_misplaced(sql: str) -> None:
    assert suspects(sql, KEYED, "sqlite").misplaced == ()


# ── T4 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_t4_elects_the_majority_of_result_sets_whatever_the_check_says(shop: Database) -> None:
    same_answer = "SELECT SUM(1) FROM item WHERE kind = 'HW'"
    model = ScriptedModel(samples({1: WRONG, 2: same_answer, 3: RIGHT, 4: "SELECT nope", 5: WRONG, 6: RIGHT, 7: RIGHT}))
    asked: list[str] = []
    source = SelfVote(model, shop, budget=2)

    def check(sql: str) -> bool:
        asked.append(sql)
        return sql == RIGHT

    episode = source.acquire(attempt_with(shop, "SELECT 7"), right=False, accept=check).episode
    assert asked == [WRONG, WRONG]
    assert episode is None
    assert [s.index for s in model.samplings] == list(range(1, 11))
    assert {s.temperature for s in model.samplings} == {0.8}


ROWS_A, ROWS_B = Rows(("n",), ((1,), (2,))), Rows(("m",), ((2,), (1,), (1,)))
BAD = Failure(FailureKind.ENGINE, "broken")


def test_results_are_one_cluster_when_they_are_the_same_set_of_rows() -> None:
    other = Rows(("n",), ((9,),))
    assert elect([("other", other), ("a", ROWS_A), ("b", ROWS_B)]) == ("a", ROWS_A)


def test_a_tie_goes_to_the_cluster_that_came_first() -> None:
    other = Rows(("n",), ((9,),))
    assert elect([("bad", BAD), ("x", other), ("a", ROWS_A), ("b", ROWS_B), ("y", other)]) == ("x", other)


def test_errors_never_form_a_cluster_and_all_errors_elect_nobody() -> None:
    assert elect([("bad", BAD), ("bad", BAD), ("a", ROWS_A)]) == ("a", ROWS_A)
    assert elect([("bad", BAD)] * 5) is None
    assert elect([]) is None


@given(st.lists(st.sampled_from([("a", ROWS_A), ("e", Rows(("n",), ())), ("bad", BAD)]), max_size=9))
def test_the_elected_cluster_is_never_smaller_than_another(ballots: list[tuple[str, Rows | Failure]]) -> None:
    counts = {name: sum(sql == name for sql, _ in ballots) for name in ("a", "e")}
    elected = elect(ballots)
    assert (elected is None) == (max(counts.values()) == 0)
    if elected is not None:
        assert counts[elected[0]] == max(counts.values())


def test_an_attempt_of_five_errors_proposes_no_candidate(shop: Database) -> None:
    model = ScriptedModel(lambda *_: fenced("SELECT nope"))
    asked: list[str] = []

    def accept(sql: str) -> bool:
        asked.append(sql)
        return False

    effort = SelfVote(model, shop, budget=1).acquire(attempt_with(shop, None), right=False, accept=accept)
    assert (effort.episode, effort.last_candidate, asked) == (None, None, [])
    assert (effort.rounds[0].sql, len(effort.rounds[0].calls)) == (None, 5)


def test_a_refused_prompt_ends_the_repair_and_keeps_the_rounds_before_it(shop: Database) -> None:
    def refuse_the_second(messages: Sequence[Message], sampling: Sampling) -> str:
        if sampling.index > 1:
            raise ModelRejected("the prompt is too long")
        return fenced(WRONG)

    effort = Resample(ScriptedModel(refuse_the_second), shop).acquire(
        attempt_with(shop, WRONG), right=False, accept=right
    )
    assert [spent.sql for spent in effort.rounds] == [WRONG]
    assert effort.last_candidate is not None


# ── where episodes come from ────────────────────────────────────────────────────────────────────────────────────────


def test_success_keeps_a_right_first_try_with_an_empty_trace(shop: Database) -> None:
    episode = FirstTry().acquire(attempt_with(shop, RIGHT), right=True, accept=right).episode
    assert episode is not None
    assert (episode.source, episode.sql, episode.rounds) == ("success", RIGHT, ())
    assert FirstTry().acquire(attempt_with(shop, WRONG), right=False, accept=right).episode is None
    assert FirstTry().acquire(attempt_with(shop, None), right=False, accept=right).episode is None


def test_union_keeps_both_successes_and_repairs(shop: Database) -> None:
    union = Union(Probing(ScriptedModel(repairing), shop))
    origins = [union.acquire(attempt_with(shop, sql), right=right(sql), accept=right) for sql in (RIGHT, WRONG)]
    assert [effort.episode and effort.episode.source for effort in origins] == ["success", "T3"]


def test_exploration_looks_before_the_first_answer(shop: Database) -> None:
    model = ScriptedModel(repairing)
    attempt = Exploring(model, shop).solve(QUESTION)
    assert attempt.sql == RIGHT
    told = attempt.call.messages[1].content
    assert told.startswith(f"[Database schema]\n{SCHEMA}\n[Question]\n")
    assert "[Database probes and what they revealed]\n- item.kind holds 'HW', 'FD'.\n" in told
    assert told.endswith("Write the SQLite query now, inside a ```sql block.")


def test_exploration_as_a_source_is_blind_to_the_wrong_attempt(shop: Database) -> None:
    model = ScriptedModel(repairing)
    episode = Explore(model, shop, budget=3).acquire(attempt_with(shop, WRONG), right=False, accept=right).episode
    assert episode is not None
    assert len(episode.rounds) == 1
    assert all(WRONG not in message.content for prompt in model.prompts for message in prompt)


def test_the_trace_keeps_the_first_rows_of_a_huge_result() -> None:
    kept = clip(Rows(("n",), tuple((n,) for n in range(1000))))
    assert isinstance(kept, Rows)
    assert len(kept.rows) == 50
    assert clip(None) is None
    assert Probe("SELECT 1", kept).execution is kept
