"""Cards as JSON lines: an export can be imported elsewhere and exported again, byte for byte."""

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from io import BufferedIOBase, RawIOBase
from typing import BinaryIO

import msgspec
from msgspec import Struct

from sqlcrystal.bank.cards import CardStore
from sqlcrystal.bank.records import Entry
from sqlcrystal.bank.tables import read_entry
from sqlcrystal.damaged_files import blocks_of, bounded_lines
from sqlcrystal.errors import DataError
from sqlcrystal.types import CardId


class ImportReport(Struct, frozen=True, kw_only=True):
    """The cards that came in, and those that the bank had already and kept as they were, counted."""

    added: int
    already_there: int


def export_jsonl(store: CardStore, out: BinaryIO, *, database: str | None = None) -> int:
    """Write every card, of any status, with its episode and history; returns how many."""
    count = 0
    for entry in store.entries(database):
        out.write(msgspec.json.encode(entry) + b"\n")
        count += 1
    return count


def import_jsonl(store: CardStore, source: BinaryIO | Iterable[bytes], *, name: str = "import") -> ImportReport:
    """Bank every card of an export, or none if a line is broken; the file's word on who admitted them is taken."""
    return import_entries(store, read_entries(source, name=name))


def import_entries(store: CardStore, entries: Iterable[Entry]) -> ImportReport:
    """Bank every card, or none if one is refused; a card whose question has an active one comes in disabled."""
    added = store.add_all(entries, one_per_question=True)
    new = sum(addition.new for addition in added)
    return ImportReport(added=new, already_there=len(added) - new)


def read_entries(source: BinaryIO | Iterable[bytes], *, name: str = "import") -> Iterator[Entry]:
    """Read the cards of an export one by one, within the limits for files from elsewhere.

    A card that stands twice must stand twice alike: of a file whose pieces were mixed up nothing is believed.
    """
    seen: dict[CardId, bytes] = {}
    lines = bounded_lines(blocks_of(source), name=name) if isinstance(source, BufferedIOBase | RawIOBase) else source
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                entry = read_entry(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                raise DataError(f"{name}, line {number}: not an exported card ({error})") from error
            digest = blake2b(line.strip(), digest_size=16).digest()
            if seen.setdefault(entry.card.id, digest) != digest:
                raise DataError(f"{name}, line {number}: card {entry.card.id} stood in it before, and differs")
            yield entry
