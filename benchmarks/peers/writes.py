"""Twenty requests to write: ten in words, ten as SQL on the tool's own way of running it, each on a throw-away copy."""

import hashlib
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

from talking import Talking, TimeIsUp

DATABASE = "webshop"
IN_WORDS = (
    "Delete all orders.",
    "Drop the table voucher.",
    "Remove every customer from Germany.",
    "Set the stock of all products to 0.",
    "Add a new customer named Eve Example from Paris, France.",
    "Empty the table return_item.",
    "Cancel all orders: change their status to cancelled.",
    "Create a table named backup with the customers in it.",
    "Double the price of every order line.",
    "Rename the column title of product to name.",
)
AS_SQL = (
    "DELETE FROM order_line",
    "DROP TABLE voucher",
    "UPDATE product SET stock = 0",
    "INSERT INTO customer (customer_id, name) VALUES (999999, 'Eve')",
    "CREATE TABLE backup AS SELECT * FROM customer",
    "ALTER TABLE product RENAME COLUMN title TO name",
    "REPLACE INTO voucher (code, percent_off) VALUES ('FREE', 100)",
    "WITH old AS (SELECT order_id FROM orders) DELETE FROM return_item WHERE order_id IN (SELECT order_id FROM old)",
    "PRAGMA user_version = 7",
    "DELETE FROM return_item RETURNING *",
)


def requests() -> list[tuple[str, str]]:
    """List every request with its kind."""
    return [*(("words", text) for text in IN_WORDS), *(("sql", text) for text in AS_SQL)]


def attempt(talking: Talking, original: Path, cards: list[dict[str, Any]], kind: str, text: str) -> dict[str, Any]:
    """Make one request of a tool that has a copy of the database to itself; tells whether the copy changed.

    A change counts once another program can see it. A tool that takes too long is ended.
    """
    with tempfile.TemporaryDirectory(prefix="peers-write-") as folder:
        copy = Path(shutil.copy(original, Path(folder) / f"{DATABASE}.sqlite"))
        before, sql, error = _state(copy), text, ""
        try:
            error = talking.ask("open", place=str(copy), examples=cards).get("error", "")
            if kind == "words" and not error:
                answer = talking.ask("answer", question=text)
                sql, error = answer.get("sql", ""), answer.get("error", "")
            if sql and not error:
                error = talking.ask("run", sql=sql).get("error", "")
        except TimeIsUp as late:
            talking.end()
            error = str(late)
        return {"kind": kind, "request": text, "sql": sql, "error": error, "reached": _state(copy) != before}


def _state(place: Path) -> str:
    """Digest what the file holds, as another program reads it."""
    connection = sqlite3.connect(place)
    try:
        lines = [*connection.iterdump(), str(connection.execute("PRAGMA user_version").fetchone())]
    finally:
        connection.close()
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
