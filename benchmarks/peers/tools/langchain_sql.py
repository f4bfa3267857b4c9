"""LangChain: the SQL chain with examples chosen by likeness as its guide on SQL prompts says, and the SQL agent."""

import re
import sys
from typing import Any

from langchain_classic.chains import create_sql_query_chain
from langchain_community.agent_toolkits import create_sql_agent
from langchain_community.tools.sql_database.tool import QuerySQLDatabaseTool
from langchain_community.utilities import SQLDatabase
from langchain_core.example_selectors import SemanticSimilarityExampleSelector
from langchain_core.prompts import FewShotPromptTemplate, PromptTemplate
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from talk import PATIENCE, Endpoint, converse

ROWS = 10_000
"""The most rows a query is told to return; LangChain's 5 would cut right answers short."""
PREFIX = (
    "You are a SQLite expert. Given an input question, create a syntactically correct SQLite query to run. "
    "Unless otherwise specified, do not return more than {top_k} rows.\n\n"
    "Here is the relevant table info: {table_info}\n\n"
    "Below are a number of examples of questions and their corresponding SQL queries."
)
"""The words of LangChain's guide."""


class LangChain:
    """What chain and agent share."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Set up the model and the embedder."""
        self._llm = ChatOpenAI(
            model=endpoint.model,
            base_url=endpoint.base_url,
            api_key=endpoint.key,
            temperature=0,
            max_retries=0,
            timeout=PATIENCE,
        )
        self._embeddings = OpenAIEmbeddings(
            model=endpoint.embedder,
            base_url=endpoint.base_url,
            api_key=endpoint.key,
            check_embedding_ctx_length=False,
        )

    def open(self, place: str, examples: list[dict[str, str]]) -> None:
        """Open the database with its three sample rows a table."""
        self._database = SQLDatabase.from_uri(f"sqlite:///{place}")
        self._prepare(examples)

    def _prepare(self, examples: list[dict[str, str]]) -> None:
        raise NotImplementedError


class Chain(LangChain):
    """`create_sql_query_chain` with up to five examples."""

    def _prepare(self, examples: list[dict[str, str]]) -> None:
        prompt = None
        if examples:
            selector = SemanticSimilarityExampleSelector.from_examples(
                [{"input": pair["question"], "query": pair["sql"]} for pair in examples],
                self._embeddings,
                InMemoryVectorStore,
                k=5,
                input_keys=["input"],
            )
            prompt = FewShotPromptTemplate(
                example_selector=selector,
                example_prompt=PromptTemplate.from_template("User input: {input}\nSQL query: {query}"),
                prefix=PREFIX,
                suffix="User input: {input}\nSQL query: ",
                input_variables=["input", "top_k", "table_info"],
            )
        self._chain = create_sql_query_chain(self._llm, self._database, prompt, k=ROWS)

    def answer(self, question: str) -> str:
        """Invoke the chain; a chat model's block of code and the label of LangChain's form are taken off."""
        return sql_of(self._chain.invoke({"question": question}))

    def run(self, sql: str) -> int:
        """Run it with the tool that the guide joins to the chain."""
        return counted(QuerySQLDatabaseTool(db=self._database).invoke(sql))


class Agent(LangChain):
    """`create_sql_agent` in its form for models that call no tools: thought, action, observation."""

    def _prepare(self, examples: list[dict[str, str]]) -> None:  # noqa: ARG002
        self._asked: list[str] = []
        run = self._database.run_no_throw

        def watched(command: str, *arguments: Any, **more: Any) -> Any:
            self._asked.append(command)
            return run(command, *arguments, **more)

        self._database.run_no_throw = watched  # type: ignore[method-assign]
        self._agent = create_sql_agent(
            self._llm,
            db=self._database,
            agent_type="zero-shot-react-description",
            top_k=ROWS,
            max_iterations=15,
            agent_executor_kwargs={"handle_parsing_errors": True},
        )

    def answer(self, question: str) -> str:
        """Let it work; its answer is the last statement it ran."""
        self._asked.clear()
        self._agent.invoke({"input": question})
        return sql_of(self._asked[-1]) if self._asked else ""

    def run(self, sql: str) -> int:
        """Run it with the agent's tool."""
        return counted(QuerySQLDatabaseTool(db=self._database).invoke(sql))


def sql_of(reply: str) -> str:
    """Take the SQL out of a reply."""
    block = re.search(r"```(?:sql|sqlite)?\s*\n?(.*?)(?:```|$)", reply, re.DOTALL | re.IGNORECASE)
    text = block[1] if block else reply
    return re.sub(r"^.*?(?:SQLQuery|SQL query):", "", text.strip(), flags=re.DOTALL).strip()


def counted(result: object) -> int:
    """Tell an error that the tool puts into words from a result."""
    if str(result).startswith("Error:"):
        raise RuntimeError(str(result))
    return len(str(result))


if __name__ == "__main__":
    converse({"chain": Chain, "agent": Agent}[sys.argv[5]])
