"""Vanna with its OpenAI client and ChromaDB, trained on the DDL and on question-SQL pairs as its guide for SQLite says.

These classes lie in `vanna.legacy` since Vanna 2, whose own agent needs a model that calls tools.
"""

from chromadb import EmbeddingFunction, Embeddings
from openai import OpenAI
from talk import PATIENCE, Endpoint, converse
from vanna.legacy.chromadb import ChromaDB_VectorStore
from vanna.legacy.openai import OpenAI_Chat


class Embedded(EmbeddingFunction[list[str]]):
    """The endpoint's vectors, where Vanna would fetch a model from the hub."""

    def __init__(self, client: OpenAI, model: str) -> None:
        """Keep the client."""
        self._client, self._model = client, model

    def __call__(self, texts: list[str]) -> Embeddings:
        """Embed."""
        reply = self._client.embeddings.create(model=self._model, input=list(texts), encoding_format="float")
        return [row.embedding for row in reply.data]

    @staticmethod
    def name() -> str:
        """Name it for Chroma."""
        return "endpoint"


class Trained(ChromaDB_VectorStore, OpenAI_Chat):
    """The two halves joined as in Vanna's guide."""

    def __init__(self, client: OpenAI, config: dict[str, object]) -> None:
        """Set up both."""
        ChromaDB_VectorStore.__init__(self, config=config)
        OpenAI_Chat.__init__(self, client=client, config=config)

    def log(self, message: str, title: str = "Info") -> None:
        """Say nothing."""


class Vanna:
    """A Vanna for each database."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Keep the client."""
        self._client = OpenAI(base_url=endpoint.base_url, api_key=endpoint.key, max_retries=0, timeout=PATIENCE)
        self._endpoint = endpoint

    def open(self, place: str, examples: list[dict[str, str]]) -> None:
        """Train on every statement of the schema and every pair."""
        config = {
            "model": self._endpoint.model,
            "temperature": 0.0,
            "client": "in-memory",
            "embedding_function": Embedded(self._client, self._endpoint.embedder),
            "max_tokens": 6000,  # of the prompt: the endpoint holds 8192
        }
        self._vanna = Trained(self._client, config)
        for collection in (
            self._vanna.ddl_collection,
            self._vanna.sql_collection,
            self._vanna.documentation_collection,
        ):
            ids = collection.get()["ids"]  # in memory, Chroma shares its collections within a process
            if ids:
                collection.delete(ids=ids)
        self._vanna.connect_to_sqlite(place)
        schema = self._vanna.run_sql("SELECT type, sql FROM sqlite_master WHERE sql is not null")
        for ddl in schema["sql"].to_list():
            self._vanna.train(ddl=ddl)
        for pair in examples:
            self._vanna.train(question=pair["question"], sql=pair["sql"])

    def answer(self, question: str) -> str:
        """Generate; an intermediate look at the data is allowed."""
        return str(self._vanna.generate_sql(question, allow_llm_to_see_data=True))

    def run(self, sql: str) -> int:
        """Run it as `vn.ask` does."""
        return len(self._vanna.run_sql(sql))


if __name__ == "__main__":
    converse(Vanna)
