"""Exports of a run: its results as tables, one row per answer, and a bank as cards for a service."""

import csv
import io
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqlcrystal.bank import Entry
from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.escaping import csv_cell
from sqlcrystal.ledger.records import BankedCard, Ledger, Manifest, Outcome, read_ledger, write_whole
from sqlcrystal.scoring.verdicts import RULES
from sqlcrystal.timestamps import timestamp
from sqlcrystal.types import Admission, Card, Question

RESULTS_CSV = "results.csv"
RESULTS_PARQUET = "results.parquet"
LISTS = ("cards", "scores", "round_calls", "traits")
PLAIN = tuple(name for name in Outcome.__struct_fields__ if name not in ("rules", *LISTS))
COLUMNS = (
    "version",
    "study",
    "digest",
    "model",
    *PLAIN,
    *(f"rule {rule}" for rule in RULES),
    *LISTS,
)


def write_results(ledger: Ledger, folder: Path) -> list[Path]:
    """Write the CSV, and the Parquet file where pyarrow is installed; each whole or not at all."""
    written = [write_whole(folder / RESULTS_CSV, _as_csv(ledger))]
    if find_spec("pyarrow") is not None:
        written.append(write_whole(folder / RESULTS_PARQUET, _as_parquet(ledger)))
    return written


def load_writers() -> None:
    """Load what writing takes: part of a second that a run would otherwise spend at its end, with nothing to ask."""
    if find_spec("pyarrow") is not None:
        import pyarrow.parquet  # noqa: F401


def _rows(manifest: Manifest, outcomes: Sequence[Outcome]) -> Iterator[list[Any]]:
    for outcome in outcomes:
        yield [
            manifest.version,
            manifest.study,
            manifest.digest,
            manifest.model,
            *(getattr(outcome, name) for name in PLAIN),
            *(outcome.rules.get(rule) for rule in RULES),
            *(list(getattr(outcome, name)) for name in LISTS),
        ]


def _as_csv(ledger: Ledger) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in _rows(ledger.manifest, ledger.outcomes):
        writer.writerow([_cell(value) for value in row])
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, list):
        return csv_cell(" ".join(map(str, value)))
    return csv_cell(value) if isinstance(value, str) else value


def _as_parquet(ledger: Ledger) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = list(zip(*_rows(ledger.manifest, ledger.outcomes), strict=True)) or [()] * len(COLUMNS)
    kinds = {
        "cards": pa.list_(pa.string()),
        "scores": pa.list_(pa.float64()),
        "round_calls": pa.list_(pa.int64()),
        "traits": pa.list_(pa.float64()),
        "sql": pa.string(),
    }
    kinds["first_sql"] = kinds["other_sql"] = pa.string()
    arrays = [pa.array(values, type=kinds.get(name)) for name, values in zip(COLUMNS, columns, strict=True)]
    sink = io.BytesIO()
    pq.write_table(pa.table(dict(zip(COLUMNS, arrays, strict=True))), sink)
    return sink.getvalue()


def banked_entries(folder: Path, *, arm: str, seed: int) -> list[Entry]:
    """Every card that the arm banked under the seed; each keeps the signal that admitted it and names its study.

    A ledger does not keep fingerprints, so every card is run again before it is served for the first time.
    """
    ledger = read_ledger(folder)
    arms = sorted({card.arm for card in ledger.cards})
    if not arms:
        raise DataError(f"{folder}: the study banked no cards")
    if arm not in arms:
        raise ConfigError.unknown("--arm", arm, arms)
    seeds = sorted({card.seed for card in ledger.cards if card.arm == arm})
    if seed not in seeds:
        raise ConfigError.unknown("--seed", str(seed), [str(known) for known in seeds])
    writer = next((listed.writer for listed in ledger.manifest.arms if listed.name == arm), arm)
    at = timestamp()
    return [
        Entry(card=_card(card, ledger, writer=writer, at=at))
        for card in ledger.cards
        if card.arm == arm and card.seed == seed
    ]


def _card(card: BankedCard, ledger: Ledger, *, writer: str, at: str) -> Card:
    study = ledger.manifest.study
    return Card(
        id=card.id,
        database=card.database,
        question=Question(id=card.question_id, database=card.database, text=card.question),
        sql=card.sql,
        text=card.text,
        writer=writer,
        source=card.source,
        admission=Admission(signal=card.signal, by=f"study {study}", at=at, detail=f"arm {card.arm}, seed {card.seed}"),
        fingerprint="",
        tokens=card.tokens,
    )
