"""sqlcrystal through its Python face, with every setting as it ships."""

import json
import os
import tempfile
from pathlib import Path

from talk import PATIENCE, Endpoint, converse

from sqlcrystal import Crystal
from sqlcrystal.bank.exchange import read_entries
from sqlcrystal.config import DatabaseEntry, TeamFile


class Ours:
    """A Crystal for each database, with a store of its own."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Say where the model is; the key stays in the environment."""
        os.environ["SQLCRYSTAL_API_KEY"] = endpoint.key
        patient = {"attempts": 1, "timeout": PATIENCE, "deadline": PATIENCE}
        self._model = {"kind": "openai", "base_url": endpoint.base_url, "name": endpoint.model, "retry": patient}
        self._crystal: Crystal | None = None

    def open(self, place: str, examples: list[dict[str, str]]) -> None:
        """Import the cards that the examples were read from."""
        if self._crystal is not None:
            self._crystal.close()
        store = Path(tempfile.mkdtemp(prefix="peers-")) / "sqlcrystal.db"
        cards = list(read_entries([json.dumps(pair["card"]).encode() for pair in examples]))
        name = cards[0].card.database if cards else "database"
        entry = DatabaseEntry(url=place)
        self._crystal = Crystal(TeamFile(databases={name: entry}, model=self._model, store=str(store)))
        self._crystal.import_cards(cards)

    def answer(self, question: str) -> str:
        """Ask."""
        assert self._crystal is not None
        return self._crystal.ask(question).sql or ""

    def run(self, sql: str) -> int:
        """Run it through the guard."""
        assert self._crystal is not None
        result = self._crystal.run(sql)
        if result.error:
            raise RuntimeError(result.error)
        return result.row_count


if __name__ == "__main__":
    converse(Ours)
