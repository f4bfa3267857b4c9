"""Writing tells its story: the diff, the failure modes, the guards, the capsule and its fence."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shop import PROBE, QUESTION, RIGHT, WRONG
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.protocols import Database
from sqlcrystal.types import Attempt, Call, Completion, Episode, Probe, Round, Rows, Sampling
from sqlcrystal.writing.capsule import SYSTEM, LessonWriter, distil, fence, names, read
from sqlcrystal.writing.capsule import prompt as capsule_prompt
from sqlcrystal.writing.card import Trace, estimate_tokens, render_pair
from sqlcrystal.writing.diff import CLAUSES, QUERY, ClauseDiff, diff
from sqlcrystal.writing.diff_writers import GUARDS, MODES, Anchor, Diff, DiffGuard, DiffMode, modes


def episode(wrong: str | None = WRONG, fixed: str = RIGHT, *, probed: bool = True) -> Episode:
    call = Call(purpose="solve", messages=(), sampling=Sampling(), completion=Completion(text="…"))
    probes = (Probe(PROBE, Rows(("kind",), (("HW",), ("FD",)))),)
    rounds = (Round(calls=(call,), sql=fixed, probes=probes, accepted=True),) if probed else ()
    return Episode(attempt=Attempt(question=QUESTION, calls=(call,), sql=wrong), source="T3", sql=fixed, rounds=rounds)


# ── the diff ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_diff_names_each_clause_that_changed_in_sqls_order() -> None:
    changes = diff(
        "SELECT name FROM item WHERE kind = 'x' AND price > 1",
        "SELECT name, price FROM item WHERE kind = 'HW' AND price > 1 ORDER BY price LIMIT 1",
        "sqlite",
    )
    assert changes == (
        ClauseDiff("SELECT", "...", "... price"),
        ClauseDiff("WHERE", "... kind = 'x'", "... kind = 'HW'"),
        ClauseDiff("ORDER BY", "(none)", "price"),
        ClauseDiff("LIMIT", "(none)", "1"),
    )


@pytest.mark.parametrize(
    "fixed",
    [
        "select  T1.name from item as T1 where T1.kind = 'HW'",
        'SELECT "name" FROM "item" WHERE ("kind" = \'HW\')',
        "SELECT name AS n FROM Item WHERE KIND = 'HW'",
    ],
)
def test_another_spelling_of_the_same_query_is_no_change(fixed: str) -> None:
    assert diff("SELECT name FROM item WHERE kind = 'HW'", fixed, "sqlite") == ()


def test_the_order_in_which_inner_joins_are_written_is_no_change() -> None:
    wrong = "SELECT t.a FROM t JOIN u ON t.id = u.id WHERE u.b = 1"
    fixed = "SELECT T2.a FROM u AS T1 INNER JOIN t AS T2 ON T1.id = T2.id WHERE T1.b IS NOT NULL"
    assert diff(wrong, fixed, "sqlite") == (ClauseDiff("WHERE", "u.b = 1", "T1.b IS NOT NULL"),)
    outer = diff(wrong, fixed.replace("INNER", "LEFT"), "sqlite")
    assert [change.clause for change in outer] == ["FROM", "JOIN", "WHERE"]


def test_sql_that_cannot_be_parsed_differs_as_a_whole_and_has_no_mode() -> None:
    for wrong in ("SELEC name", None):
        [change] = diff(wrong, RIGHT, "sqlite")
        assert (change.clause, change.fixed) == (QUERY, RIGHT)
        assert modes(wrong, RIGHT, "sqlite") == ()


# ── the failure modes ───────────────────────────────────────────────────────────────────────────────────────────────

REPAIRS = {
    "value-literal": ("SELECT a FROM t WHERE b = 'x'", "SELECT a FROM t WHERE b = 'y'"),
    "column-ref": ("SELECT a FROM t WHERE b = 'x'", "SELECT a FROM t WHERE c = 'x'"),
    "table-ref": ("SELECT a FROM t", "SELECT a FROM u"),
    "join": ("SELECT a FROM t", "SELECT a FROM t JOIN u ON t.id = u.id"),
    "join-condition": ("SELECT a FROM t JOIN u ON t.id = u.tid", "SELECT a FROM t JOIN u ON t.id = u.id"),
    "aggregate": ("SELECT SUM(a) FROM t", "SELECT AVG(a) FROM t"),
    "group-by": ("SELECT a, COUNT(*) FROM t", "SELECT a, COUNT(*) FROM t GROUP BY a"),
    "order-by": ("SELECT a FROM t ORDER BY b", "SELECT a FROM t ORDER BY b DESC"),
    "limit": ("SELECT a FROM t LIMIT 1", "SELECT a FROM t LIMIT 5"),
    "distinct": ("SELECT COUNT(a) FROM t", "SELECT COUNT(DISTINCT a) FROM t"),
    "subquery": ("SELECT a FROM t WHERE b = 3", "SELECT a FROM t WHERE b = (SELECT b FROM t)"),
    "set-operation": ("SELECT a FROM t", "SELECT a FROM t UNION SELECT a FROM t"),
    "function-cast": ("SELECT a / b FROM t", "SELECT CAST(a AS REAL) / b FROM t"),
    "predicate-logic": ("SELECT a FROM t WHERE x = 1 OR y = 2", "SELECT a FROM t WHERE x = 1 AND y = 2"),
}


def test_there_are_fourteen_modes_and_each_has_a_guard_and_an_example() -> None:
    assert len(MODES) == 14
    assert list(MODES) == list(GUARDS) == list(REPAIRS)


@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "mysql", "duckdb"])
@pytest.mark.parametrize("mode", REPAIRS)
def test_each_mode_is_told_from_the_others(mode: str, dialect: str) -> None:
    wrong, fixed = REPAIRS[mode]
    assert modes(wrong, fixed, dialect) == (mode,)


def test_modes_come_in_the_tables_order() -> None:
    named = modes("SELECT a FROM t WHERE b = 'x'", "SELECT DISTINCT a FROM t WHERE c = 'y' LIMIT 1", "sqlite")
    assert named == ("value-literal", "column-ref", "limit", "distinct")


QUERIES = sorted({sql for pair in REPAIRS.values() for sql in pair} | {WRONG, RIGHT, PROBE})


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(QUERIES), st.sampled_from(QUERIES))
def test_a_change_always_has_a_mode_and_no_change_never_has_one(wrong: str, fixed: str) -> None:
    changes = diff(wrong, fixed, "sqlite")
    assert bool(changes) == bool(modes(wrong, fixed, "sqlite"))
    assert {change.clause for change in changes} <= {*CLAUSES, QUERY}
    if wrong == fixed:
        assert not changes


# ── the formats at their edges ──────────────────────────────────────────────────────────────────────────────────────


def test_a_first_try_success_is_written_without_a_wrong_side(shop: Database) -> None:
    success = episode(RIGHT, RIGHT, probed=False)
    for make in (Diff, DiffMode, DiffGuard, Anchor):
        text = make(shop).render(success)
        assert RIGHT in text
        assert "Wrong" not in text
        assert "Guard" not in text
    assert "First attempt (accepted)" in Trace(shop.fingerprint).render(success)


def test_a_repair_that_the_trees_cannot_tell_apart_is_still_written_as_a_repair(shop: Database) -> None:
    text = DiffMode(shop).render(episode(RIGHT.lower().replace("hw", "HW"), RIGHT))
    assert text.startswith("Past repair:")
    assert f"- Fixed: {RIGHT}\n- Clause: QUERY" in text


def test_an_attempt_without_sql_is_written_as_none(shop: Database) -> None:
    text = DiffMode(shop).render(episode(None))
    assert f"- Wrong: (none)\n- Fixed: {RIGHT}\n- Clause: QUERY" in text
    assert "(no SQL)" in Trace(shop.fingerprint).render(episode(None))


def test_the_guard_is_that_of_the_first_mode(shop: Database) -> None:
    text = DiffGuard(shop).render(episode("SELECT a, COUNT(*) FROM t", "SELECT a, COUNT(*) FROM t GROUP BY a LIMIT 1"))
    assert "- Guard: Add GROUP BY only when the answer is per entity/category." in text
    assert GUARDS["limit"] not in text


def test_a_verbatim_card_can_be_rendered_with_another_questions_sql() -> None:
    assert render_pair("How\n many?", " SELECT 1 ") == "Q: How many?\n```sql\nSELECT 1\n```"


# ── the capsule and its fence ───────────────────────────────────────────────────────────────────────────────────────


def test_the_capsule_prompt_is_the_papers() -> None:
    system, user = capsule_prompt(episode())
    assert system.content == SYSTEM
    assert SYSTEM == (
        "You write a compact Text2SQL repair memory. Use only the provided wrong and repaired SQL. "
        "Output JSON only with keys trigger, applicability, negative_guard, lesson."
    )
    assert user.content == (
        "[Question]\nHow many hardware items are there?\n[Evidence]\nhardware is a kind\n"
        f"[Initial wrong SQL]\n{WRONG}\n[Final repaired SQL]\n{RIGHT}\n"
        f"[Probe reports]\n{PROBE}\n  -> HW  FD"
    )


@pytest.mark.parametrize(
    "reply",
    [
        '{"trigger": "t", "lesson": "l"}',
        'Here:\n```json\n{"trigger": "t",\n "lesson": "l", "extra": {"a": 1}}\n```\nDone {ok}.',
        '{"trigger": ["t"], "applicability": null, "lesson": "l"}',
    ],
)
def test_a_capsule_is_read_from_any_dress_of_json(reply: str) -> None:
    capsule = read(reply)
    assert (capsule.trigger, capsule.applicability, capsule.lesson) == ("t", "", "l")


@pytest.mark.parametrize("reply", ["no JSON here", "{broken", "[1, 2]", "{} }", '{"trigger": 3}'])
def test_a_capsule_that_cannot_be_read_is_blank(reply: str) -> None:
    assert read(reply) == read("")


@pytest.mark.parametrize(
    "text",
    [
        "kind holds 'HW', not 'hardware'.",
        "Filter on item.kind with codes such as HW or FD.",
        "Use COUNT and GROUP BY only if SQL needs it; don't guess the items' codes.",
        "Question asks for `kind`",
    ],
)
def test_the_fence_keeps_what_the_episode_holds(text: str) -> None:
    assert fence(text, episode()) == text


@pytest.mark.parametrize(
    "text",
    [
        "kind holds 'hw_code'.",
        "Filter on item_kind instead.",
        "Join with item.supplier first.",
        'The value is "Hardware Store".',
        "Codes are HX or FD.",
        "Use the itemKind column.",
        "Only 1987 counts.",
    ],
)
def test_the_fence_blanks_a_name_the_episode_never_held(text: str) -> None:
    assert names(text)
    assert fence(text, episode()) == ""


@given(st.text(alphabet="abcXYZ_09'\"` .", max_size=40))
def test_whatever_passes_the_fence_names_only_what_the_episode_holds(text: str) -> None:
    kept = fence(text, episode())
    held = f"{QUESTION.text} {QUESTION.evidence} {WRONG} {RIGHT} {PROBE} kind HW FD".lower()
    assert kept in {"", text}
    if kept:
        assert all(part.lower() in held for name in names(kept) for part in name.replace(".", " ").split())


def test_a_lesson_card_has_no_sql_and_says_when_nothing_is_left(shop: Database) -> None:
    kept, _ = LessonWriter(shop, ScriptedModel(['{"lesson": "kind holds codes such as HW"}'])).compose(episode())
    assert kept == "- Lesson: kind holds codes such as HW"
    gone, _ = LessonWriter(shop, ScriptedModel(['{"lesson": "see `price_list`"}'])).compose(episode())
    assert gone == "- Lesson: (none)"


def test_the_capsule_is_asked_for_greedily_and_may_take_as_much_as_in_the_paper(shop: Database) -> None:
    model = ScriptedModel(['{"lesson": "l"}'])
    capsule, call = distil(model, shop, episode())
    assert (capsule.lesson, call.purpose) == ("l", "capsule")
    assert [(s.temperature, s.max_tokens) for s in model.samplings] == [(0.0, 2048)]


def test_the_token_estimate_counts_letters_in_fives_digits_in_threes_and_signs() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("SELECT price FROM item WHERE id = 1234;") == 2 + 1 + 1 + 1 + 1 + 1 + 1 + 2 + 1
