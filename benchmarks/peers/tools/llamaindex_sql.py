"""LlamaIndex: `NLSQLTableQueryEngine` over every table, asked for the SQL only; it has no memory of answers."""

from llama_index.core import SQLDatabase
from llama_index.core.query_engine import NLSQLTableQueryEngine
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.openai_like import OpenAILike
from sqlalchemy import create_engine
from talk import PATIENCE, Endpoint, converse


class LlamaIndex:
    """An engine for each database."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Set up the model and the embedder."""
        self._llm = OpenAILike(
            model=endpoint.model,
            api_base=endpoint.base_url,
            api_key=endpoint.key,
            is_chat_model=True,
            context_window=8192,
            temperature=0.0,
            max_retries=0,
            timeout=PATIENCE,
        )
        self._embedder = OpenAILikeEmbedding(
            model_name=endpoint.embedder, api_base=endpoint.base_url, api_key=endpoint.key
        )

    def open(self, place: str, examples: list[dict[str, str]]) -> None:  # noqa: ARG002
        """Describe every table."""
        self._database = SQLDatabase(create_engine(f"sqlite:///{place}"))
        self._engine = NLSQLTableQueryEngine(
            sql_database=self._database,
            tables=list(self._database.get_usable_table_names()),
            llm=self._llm,
            embed_model=self._embedder,
            synthesize_response=False,
            sql_only=True,
        )

    def answer(self, question: str) -> str:
        """Query; the SQL stands in what is known of the response."""
        return str((self._engine.query(question).metadata or {}).get("sql_query", ""))

    def run(self, sql: str) -> int:
        """Run it as the engine does."""
        _, known = self._database.run_sql(sql)
        return len(known.get("result", ()))


if __name__ == "__main__":
    converse(LlamaIndex)
