"""Solving tells its story: the paper's prompt, one greedy call, and the SQL of its reply."""

import pytest

from shop import QUESTION, RIGHT, SCHEMA, fenced
from sqlcrystal.assembly import header
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.solving.prompt import build_prompt, render_execution
from sqlcrystal.solving.solver import ChainOfThought, SingleShot
from sqlcrystal.types import Admission, Card, CardId, Failure, FailureKind, Message, Rows


class Blueprint:
    """A database of which only the schema is read."""

    name = "shop"

    def __init__(self, dialect: str = "sqlite") -> None:
        self.dialect = dialect

    def schema(self) -> str:
        return SCHEMA

    def fingerprint(self) -> str:
        return "f"

    def execute(self, sql: str, *, timeout: float = 30.0, max_rows: int = 100_000) -> Rows:
        raise AssertionError("a solver executes nothing")

    def close(self) -> None:
        return None


def card(number: int, writer: str = "W0") -> Card:
    admission = Admission(signal="oracle", by="benchmark", at="2026-01-01T00:00:00Z")
    return Card(
        id=CardId(f"c{number}"),
        database="shop",
        question=QUESTION,
        sql=RIGHT,
        text=f"Q: card {number}",
        writer=writer,
        source="T3",
        admission=admission,
        fingerprint="f",
        tokens=4,
    )


def prompt_with(cards: list[Card]) -> tuple[Message, Message]:
    return build_prompt(schema=SCHEMA, dialect="sqlite", question=QUESTION, cards=cards, header_of=header)


def test_the_prompt_is_the_papers_word_for_word() -> None:
    system, user = build_prompt(
        header_of=header, schema=SCHEMA, dialect="sqlite", question=QUESTION, cards=[card(1), card(2)]
    )
    assert system.role == "system"
    assert system.content == (
        "You are an expert data analyst who writes correct SQLite SQL. Given a database schema and a question, "
        "output ONE SQLite SELECT query that answers it.\n"
        "Rules:\n"
        "- Use ONLY the tables and columns in the schema.\n"
        "- Quote identifiers with spaces/special chars.\n"
        "- Read-only: a single SELECT (or WITH ... SELECT); no INSERT/UPDATE/DELETE/DDL.\n"
        "- Return exactly the columns the question asks for.\n"
        "- Output the SQL inside a ```sql ... ``` block only."
    )
    assert user.role == "user"
    assert user.content == (
        f"[Database schema]\n{SCHEMA}\n"
        "[Relevant experience -- verified facts and rules]\n"
        "[Similar solved questions and their final SQL]\n"
        "Q: card 1\n\nQ: card 2\n"
        "[Question]\nHow many hardware items are there?\nHint: hardware is a kind\n"
        "Write the SQLite query now, inside a ```sql block."
    )


def test_without_cards_the_memory_block_is_absent_and_nothing_else_changes() -> None:
    _, bare = build_prompt(schema=SCHEMA, dialect="sqlite", question=QUESTION)
    _, remembering = prompt_with([card(1)])
    block = (
        "[Relevant experience -- verified facts and rules]\n[Similar solved questions and their final SQL]\nQ: card 1\n"
    )
    assert remembering.content.replace(block, "") == bare.content


def test_the_schema_stands_first_so_that_a_prefix_cache_can_reuse_it() -> None:
    prompts = [prompt_with(cards)[1].content for cards in ([], [card(1)], [card(2, "W5")])]
    assert all(prompt.startswith(f"[Database schema]\n{SCHEMA}\n") for prompt in prompts)


def test_cards_of_two_writers_stand_under_their_own_headers() -> None:
    _, user = build_prompt(
        header_of=header, schema=SCHEMA, dialect="sqlite", question=QUESTION, cards=[card(1), card(2, "W4"), card(3)]
    )
    assert (
        "[Similar solved questions and their final SQL]\nQ: card 1\n\nQ: card 3\n"
        "[Repair diffs with applicability guards of similar solved questions]\nQ: card 2\n"
    ) in user.content


@pytest.mark.parametrize(
    ("dialect", "name"),
    [("postgres", "PostgreSQL"), ("mysql", "MySQL"), ("mariadb", "MariaDB"), ("duckdb", "DuckDB")],
)
def test_the_prompt_speaks_the_databases_dialect(dialect: str, name: str) -> None:
    system, user = build_prompt(schema=SCHEMA, dialect=dialect, question=QUESTION)
    assert "SQLite" not in system.content + user.content
    assert f"correct {name} SQL" in system.content
    assert user.content.endswith(f"Write the {name} query now, inside a ```sql block.")


def test_the_solver_asks_once_greedily_and_takes_the_sql() -> None:
    model = ScriptedModel(lambda messages, sampling: fenced(RIGHT))
    attempt = SingleShot(model, Blueprint(), header_of=header).solve(QUESTION, [card(1)])
    assert attempt.sql == RIGHT
    assert attempt.cards == ("c1",)
    assert attempt.call.purpose == "solve"
    assert model.prompts == [attempt.call.messages]
    [sampling] = model.samplings
    assert (sampling.temperature, sampling.max_tokens, sampling.index) == (0.0, 2048, 0)


def test_a_reply_without_sql_is_a_recorded_failure() -> None:
    attempt = SingleShot(ScriptedModel(lambda messages, sampling: "I do not know."), Blueprint()).solve(QUESTION)
    assert attempt.sql is None
    assert attempt.call.completion.text == "I do not know."


def test_chain_of_thought_differs_in_the_instruction_only() -> None:
    model = ScriptedModel(lambda messages, sampling: f"The kind is HW.\n{fenced(RIGHT)}")
    attempt = ChainOfThought(model, Blueprint("postgres")).solve(QUESTION)
    system, user = attempt.call.messages
    assert attempt.sql == RIGHT
    assert "step by step" in system.content
    assert user.content.endswith("Think step by step, then write the PostgreSQL query inside a final ```sql block.")
    _, plain = build_prompt(schema=SCHEMA, dialect="postgres", question=QUESTION)
    assert user.content.rpartition("\n")[0] == plain.content.rpartition("\n")[0]


def test_an_execution_is_shown_in_few_short_lines() -> None:
    rows = Rows(("kind", "n"), tuple((f"k{'x' * 100}", None) for _ in range(12)))
    lines = render_execution(rows, rows=10, cell=20).splitlines()
    assert lines[0] == "kind|n"
    assert lines[1] == "k" + "x" * 18 + "…|NULL"
    assert lines[-1] == "... 2 more rows"
    assert len(lines) == 12
    assert render_execution(Rows(("n",), ())) == "(no rows)"
    assert render_execution(Failure(FailureKind.MISSING, "no such\ncolumn: x")) == (
        "ERROR (missing object): no such column: x"
    )
