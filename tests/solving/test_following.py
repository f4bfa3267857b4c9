"""Follow-ups as questions that stand alone: the prompt, the model's words, and what replaces them where they fail."""

import pytest

from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.pipeline import read
from sqlcrystal.solving.following import PastTurn, Reading, Rewriter
from sqlcrystal.types import Question

FIRST = PastTurn("Show revenue by country in 2011", "SELECT country, SUM(total) FROM sale WHERE year = 2011 GROUP BY 1")


def asked(text: str) -> Question:
    return Question(id="q", database="sales", text=text)


def reading(text: str, reply: str, *, turn: PastTurn = FIRST) -> Reading:
    return read(asked(text), [turn], rewriter=Rewriter(ScriptedModel([reply])))


def noted(note: str, reply: str) -> Reading:
    question = asked("Show revenue by month in 2024")
    return Rewriter(ScriptedModel([reply])).noted(question, "SELECT 1", note)


def test_the_model_sees_the_earlier_questions_with_their_sql_and_the_last_message() -> None:
    model = ScriptedModel(["Show revenue by country in 2012"])
    rewritten = read(asked("and in 2012?"), [PastTurn("What is sold?"), FIRST], rewriter=Rewriter(model))
    assert model.prompts[0][1].content == (
        "[Conversation]\nQuestion 1: What is sold?\nQuestion 2: Show revenue by country in 2011\n"
        "SQL 2: SELECT country, SUM(total) FROM sale WHERE year = 2011 GROUP BY 1\n"
        "[Last message]\nand in 2012?\nWrite the last message as one question that stands alone."
    )
    assert rewritten.question.text == "Show revenue by country in 2012"
    assert "year = 2011" in rewritten.question.evidence
    assert [call.purpose for call in rewritten.calls] == ["read"]


def test_the_first_question_of_a_conversation_costs_no_call() -> None:
    assert read(asked("Who?"), [], rewriter=Rewriter(ScriptedModel([]))) == Reading(question=asked("Who?"))


@pytest.mark.parametrize(
    ("message", "reply", "text"),
    [
        ("and in 2012?", "Question: “Show revenue by country in 2012”", "Show revenue by country in 2012"),
        ("and in 2012?", "<think>2012…</think>\n\nShow revenue in 2012", "Show revenue in 2012"),
        ("sort it by name", "Show revenue by country in 2011, sorted by name", None),
        ("only Peru and Chile", "Show revenue in 2011 in Peru and Chile", None),
        # What cannot be taken: nothing said, SQL, values or names or most new words lost, the same words again.
        ("and in 2012?", "", "Show revenue by country in 2011 and in 2012?"),
        ("and in 2012?", "SELECT 1", "Show revenue by country in 2011 and in 2012?"),
        ("and in 2012?", "```sql\nSELECT 1\n```", "Show revenue by country in 2011 and in 2012?"),
        ("and in 2012?", "Show revenue by country in 2011", "Show revenue by country in 2011 and in 2012?"),
        ("and in 2012?", "and in 2012?", "Show revenue by country in 2011 and in 2012?"),
        ("and in 2012?", "NEW TOPIC", "Show revenue by country in 2011 and in 2012?"),
        ("only Peru and Chile", "Show revenue in Peru", "Show revenue by country in 2011 only Peru and Chile"),
        ("with 'net' prices", "Show revenue", "Show revenue by country in 2011 with 'net' prices"),
        (
            "How many employees work in the warehouse today",
            "Show revenue",
            "How many employees work in the warehouse today",
        ),
    ],
)
def test_a_follow_up_is_read_in_words_that_keep_all_that_is_new(message: str, reply: str, text: str | None) -> None:
    found = reading(message, reply)
    assert (found.question.text, found.follows) == (reply if text is None else text, True)
    assert found.question.id == "q"


@pytest.mark.parametrize("reply", ["NEW TOPIC", "new topic.", "**NEW TOPIC**"])
def test_a_new_topic_is_asked_in_its_own_words_and_follows_nothing(reply: str) -> None:
    found = reading("How many employees work in the warehouse?", reply)
    assert (found.question, found.follows) == (asked("How many employees work in the warehouse?"), False)
    assert len(found.calls) == 1


@pytest.mark.parametrize(
    ("note", "reply", "text"),
    [
        ("only January to March please", "Show revenue from January to March 2024", True),
        ("only January to March please", "", "Show revenue by month in 2024 (only January to March please)"),
        (
            "only January to March please",
            "Show revenue in 2024",
            "Show revenue by month in 2024 (only January to March please)",
        ),
        ("revenue is net of tax", "SAME", None),
        ("revenue is net of tax", "Show revenue by month in 2024", None),
        ("revenue is net of tax", "SELECT 2", None),
    ],
)
def test_a_note_makes_it_another_question_or_leaves_it(note: str, reply: str, text: str | bool | None) -> None:
    found = noted(note, reply)
    wanted = reply if text is True else text or "Show revenue by month in 2024"
    assert (found.question.text, found.follows) == (wanted, text is not None)
