"""What is exported can be imported elsewhere and exported again, byte for byte."""

import io
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardbox import card, episode
from sqlcrystal.bank import CardStore, Entry, export_jsonl, import_jsonl, question_key
from sqlcrystal.errors import DataError
from sqlcrystal.types import CardStatus

OLD = Path(__file__).parent / "old"
Drawn = tuple[str, str, str, CardStatus]
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
drawn_cards = st.tuples(words, words, st.sampled_from(["shop", "bar", "naïve"]), st.sampled_from(CardStatus))


def one_active_card_a_question(drawn: list[Drawn]) -> list[Drawn]:
    """Leave out a second active card of one question: no store that serves has two."""
    taken: set[tuple[str, str]] = set()
    kept = []
    for text, sql, database, status in drawn:
        asked = (database, question_key(text))
        if status is CardStatus.ACTIVE and asked in taken:
            continue
        if status is CardStatus.ACTIVE:
            taken.add(asked)
        kept.append((text, sql, database, status))
    return kept


def exported(store: CardStore, database: str | None = None) -> bytes:
    out = io.BytesIO()
    export_jsonl(store, out, database=database)
    return out.getvalue()


@settings(max_examples=15, deadline=None)
@given(st.lists(drawn_cards).map(one_active_card_a_question))
def test_an_export_imported_and_exported_again_is_equal_byte_for_byte(drawn: list[Drawn]) -> None:
    with (
        TemporaryDirectory() as folder,
        CardStore(Path(folder) / "one.sqlite") as source,
        CardStore(Path(folder) / "two.sqlite") as two,
    ):
        for number, (text, sql, database, status) in enumerate(drawn):
            banked = card(number, text=text, sql=sql, database=database)
            kept = source.add(banked, episode(banked) if number % 2 else None)
            source.set_status(kept, status, by="ada", reason=text)
        first = exported(source)
        report = import_jsonl(two, first.splitlines(keepends=True))
        assert exported(two) == first
        assert report.added == len(source.find())
        assert two.find() == source.find()


@pytest.mark.parametrize("again", ["How many?", "  how\nMANY", "How many"])
def test_a_second_active_card_of_one_question_is_imported_disabled(tmp_path: Path, again: str) -> None:
    with CardStore(tmp_path / "one.sqlite") as source, CardStore(tmp_path / "two.sqlite") as two:
        for number, (text, database) in enumerate([("How many?", "shop"), (again, "shop"), (again, "bar")]):
            source.add(card(number, text=text, database=database))
        assert import_jsonl(two, exported(source).splitlines()).added == 3
        assert [(banked.id, banked.status) for banked in two.find()] == [
            ("shop-0", CardStatus.ACTIVE),
            ("shop-1", CardStatus.DISABLED),
            ("bar-2", CardStatus.ACTIVE),
        ]
        (change,) = two.history("shop-1")
        assert (change.by, change.after, change.reason) == ("import", "disabled", "its question has card shop-0")


def test_an_export_can_be_of_one_database(tmp_path: Path) -> None:
    with CardStore(tmp_path / "bank.sqlite") as store:
        store.add(card(1))
        store.add(card(1, database="bar"))
        assert exported(store, "bar").count(b"\n") == 1


def test_cards_that_are_there_already_are_kept_as_they_are(tmp_path: Path) -> None:
    with CardStore(tmp_path / "bank.sqlite") as store:
        store.add(card(1))
        lines = exported(store).splitlines()
        store.set_status("shop-1", CardStatus.DISABLED, by="ada")
        report = import_jsonl(store, lines)
        assert (report.added, report.already_there) == (0, 1)
        assert store.get("shop-1").status is CardStatus.DISABLED


@pytest.mark.parametrize(
    "broken", [b"{", b"[]", b'{"card": {"id": 1}}', b'{"card": 1, "episode": {"attempt": {"call": 1}}}', b"\xff\xfe"]
)
def test_a_broken_line_is_named_and_nothing_is_imported(tmp_path: Path, broken: bytes) -> None:
    with CardStore(tmp_path / "one.sqlite") as source, CardStore(tmp_path / "two.sqlite") as two:
        source.add(card(1))
        with pytest.raises(DataError, match=r"^cards\.jsonl, line 2: not an exported card"):
            import_jsonl(two, [exported(source), broken], name="cards.jsonl")
        assert two.find() == []


def test_an_export_of_an_earlier_version_is_imported_as_its_bank_file_would_open(tmp_path: Path) -> None:
    """The file is as version 0002 wrote it: an attempt had one call where it now has a list of calls."""
    with CardStore(tmp_path / "bank.sqlite") as store, (OLD / "cards-with-one-call.jsonl").open("rb") as file:
        assert import_jsonl(store, file).added == 3
        assert exported(store) == (OLD / "cards.jsonl").read_bytes()


def test_a_file_with_a_card_twice_and_differently_is_refused_and_one_twice_alike_is_not(tmp_path: Path) -> None:
    with CardStore(tmp_path / "source.db") as store:
        store.add_all([Entry(card=card(number), episode=episode(card(number))) for number in (1, 2)])
        whole = exported(store)
    with CardStore(tmp_path / "into.db") as store:
        with pytest.raises(DataError, match=r"^mixed, line 3: card shop-1 stood in it before, and differs$"):
            import_jsonl(store, io.BytesIO(whole + whole.replace(b"SELECT 1", b"SELECT 2")), name="mixed")
        assert len(store.cards("shop")) == 0
        assert import_jsonl(store, io.BytesIO(whole + whole)).added == 2
