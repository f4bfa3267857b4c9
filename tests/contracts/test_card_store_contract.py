"""What every card store promises, in SQLite and in PostgreSQL: it keeps what it was given, once, per database."""

from collections.abc import Callable, Iterator

import msgspec
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cardbox import card, episode
from sqlcrystal.bank import CardStore, Entry, FrozenBank
from sqlcrystal.bank.migrations import HEAD
from sqlcrystal.bank.tables import episodes, metadata
from sqlcrystal.errors import BankError
from sqlcrystal.types import CardId, CardStatus


@pytest.fixture
def store(place: str) -> Iterator[CardStore]:
    with CardStore(place) as opened:
        yield opened


def test_a_card_comes_back_equal_after_the_store_is_opened_again(place: str) -> None:
    with CardStore(place) as first:
        first.add(card(1), episode(card(1)))
    with CardStore(place) as second:
        assert second.get("shop-1") == card(1)
        assert second.cards("shop") == (card(1),)


def test_a_card_leads_up_to_its_episode_and_question(store: CardStore) -> None:
    store.add(card(1), episode(card(1)))
    kept = store.episode("shop-1")
    assert kept == episode(card(1))
    assert kept is not None
    assert kept.question == card(1).question


def test_a_database_sees_only_its_own_cards_in_the_order_they_were_banked(store: CardStore) -> None:
    for number, database in ((3, "shop"), (1, "bar"), (2, "shop")):
        store.add(card(number, database=database))
    assert [c.id for c in store.cards("shop")] == ["shop-3", "shop-2"]
    assert [c.id for c in store.cards("bar")] == ["bar-1"]
    assert store.cards("nowhere") == ()
    assert store.databases() == ("bar", "shop")


def test_the_same_id_is_banked_once(store: CardStore) -> None:
    store.add(card(1))
    store.add(msgspec.structs.replace(card(1), text="another wording"))
    assert store.cards("shop") == (card(1),)


def test_the_same_question_sql_and_writer_are_banked_once_under_the_first_id(store: CardStore) -> None:
    store.add(card(1))
    again = msgspec.structs.replace(card(1), id=CardId("other"))
    assert store.add(again) == "shop-1"
    assert store.cards("shop") == (card(1),)


def test_another_writer_may_bank_the_same_question_and_sql(store: CardStore) -> None:
    store.add(card(1))
    store.add(msgspec.structs.replace(card(1), id=CardId("other"), writer="W2"))
    assert len(store.cards("shop")) == 2


def test_an_id_taken_by_another_database_is_refused_rather_than_dropped(store: CardStore) -> None:
    store.add(card(1))
    with pytest.raises(BankError, match="taken by a card of database 'shop'"):
        store.add(msgspec.structs.replace(card(2, database="bar"), id=CardId("shop-1")))


def test_a_batch_with_a_bad_card_banks_none_of_it(store: CardStore) -> None:
    bad = card(2, text="\udc80")
    with pytest.raises(BankError, match="cannot be kept as JSON"):
        store.add_all([Entry(card=card(1)), Entry(card=bad)])
    assert store.find() == []


@pytest.mark.parametrize("status", [CardStatus.DISABLED, CardStatus.QUARANTINED])
def test_only_active_cards_are_served_and_the_history_says_who_when_and_why(
    store: CardStore, status: CardStatus
) -> None:
    store.add(card(1))
    store.set_status("shop-1", status, by="ada", reason="looks wrong")
    assert store.cards("shop") == ()
    assert store.databases() == ()
    assert store.get("shop-1").status is status
    (change,) = store.history("shop-1")
    assert (change.by, change.before, change.after, change.reason) == ("ada", "active", status, "looks wrong")
    assert change.at.endswith("+00:00")


def test_setting_the_status_a_card_has_leaves_no_trace(store: CardStore) -> None:
    store.add(card(1))
    store.set_status("shop-1", CardStatus.ACTIVE, by="ada")
    assert store.history("shop-1") == ()


def test_a_card_that_is_served_again_takes_the_place_of_another_which_names_it_as_the_cause(store: CardStore) -> None:
    store.add(card(1, text="same"))
    store.set_status("shop-1", CardStatus.DISABLED, by="ada", cause="answer-1")
    store.add(card(2, text="Same?"))
    store.set_status("shop-1", CardStatus.ACTIVE, by="bo")
    assert [served.id for served in store.cards("shop")] == ["shop-1"]
    assert [change.cause for change in store.history("shop-1")] == ["answer-1", ""]
    assert [(change.by, change.cause) for change in store.history("shop-2")] == [("bo", "shop-1")]


def test_every_card_of_one_signal_can_be_found_and_revoked_at_once(store: CardStore) -> None:
    for number in range(4):
        store.add(card(number, signal="ungated" if number % 2 else "oracle", by="bob"))
    ungated = store.find(signal="ungated", admitted_by="bob")
    store.set_statuses([c.id for c in ungated], CardStatus.DISABLED, by="ada", reason="ungated")
    assert [c.id for c in store.cards("shop")] == ["shop-0", "shop-2"]
    assert len(store.find(status=CardStatus.DISABLED)) == 2


def test_an_edited_text_keeps_the_admission_and_an_edited_sql_names_its_editor(store: CardStore) -> None:
    store.add(card(1))
    assert store.edit("shop-1", by="ada", text="clearer", tokens=1).admission == card(1).admission
    edited = store.edit("shop-1", by="ada", sql="SELECT 2", reason="typo")
    assert (edited.sql, edited.admission.signal, edited.admission.by) == ("SELECT 2", "edited", "ada")
    assert "oracle by benchmark" in edited.admission.detail
    assert store.cards("shop") == (edited,)
    assert [(c.action, c.after) for c in store.history("shop-1")] == [
        ("edited text", "clearer"),
        ("edited sql", "SELECT 2"),
    ]


def test_an_edit_that_would_make_a_duplicate_is_refused_and_changes_nothing(store: CardStore) -> None:
    store.add(card(1, text="same"))
    store.add(card(2, text="same"))
    with pytest.raises(BankError, match="already has this question and SQL"):
        store.edit("shop-2", by="ada", sql="SELECT 1")
    assert store.get("shop-2").sql == "SELECT 2"


def test_a_deleted_card_is_gone_with_its_episode_and_leaves_its_history(store: CardStore) -> None:
    store.add(card(1), episode(card(1)))
    store.delete("shop-1", by="ada", reason="private")
    assert store.cards("shop") == ()
    assert [c.action for c in store.history("shop-1")] == ["deleted"]
    with store.backend.reading() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(episodes)) == 0


def test_an_episode_outlives_one_of_its_two_cards(store: CardStore) -> None:
    store.add(card(1), episode(card(1)))
    store.add(msgspec.structs.replace(card(1), id=CardId("w2"), writer="W2"), episode(card(1)))
    store.delete("shop-1", by="ada")
    assert store.episode("w2") == episode(card(1))


def test_the_start_of_an_id_finds_the_card_unless_two_share_it(store: CardStore) -> None:
    store.add(card(11))
    store.add(card(12))
    assert store.get("shop-12") == card(12)
    assert store.get("shop-1" + "1") == card(11)
    with pytest.raises(BankError, match="several ids start so"):
        store.get("shop-1")
    for nobody in ("", "zzz", "%", "shop-2"):
        with pytest.raises(BankError, match="not in"):
            store.get(nobody)


def test_the_served_tuple_is_the_same_object_until_that_database_changes(store: CardStore) -> None:
    store.add(card(1))
    before = store.cards("shop")
    store.add(card(1, database="bar"))
    assert store.cards("shop") is before
    store.add(card(2))
    assert store.cards("shop") == (card(1), card(2))


def test_a_second_process_sees_what_the_first_one_banked(store: CardStore, place: str) -> None:
    assert store.cards("shop") == ()
    with CardStore(place) as other:
        other.add(card(1))
    assert store.cards("shop") == (card(1),)


def test_whatever_one_process_does_to_cards_another_serves_what_one_that_starts_now_does(
    store: CardStore, place: str
) -> None:
    steps: list[Callable[[], object]] = [
        lambda: store.add_all([Entry(card=card(number)) for number in range(5)]),
        lambda: store.add(card(5)),
        lambda: store.add(card(0, database="zoo")),
        lambda: store.set_status("shop-1", CardStatus.DISABLED, by="ada"),
        lambda: store.add(card(6, status=CardStatus.DISABLED)),
        lambda: store.set_status("zoo-0", CardStatus.DISABLED, by="ada"),
        lambda: store.set_status("shop-6", CardStatus.ACTIVE, by="ada"),
        lambda: store.edit("shop-2", by="ada", sql="SELECT 22"),
        lambda: store.edit("shop-3", by="ada", tokens=99),
        lambda: store.delete("shop-4", by="ada"),
        lambda: store.add(card(7)),
    ]
    with CardStore(place) as watching:
        for step in steps:
            step()
            with CardStore(place) as started:
                expected = started.cards("shop")
            assert watching.cards("shop") == store.cards("shop") == expected
        before = watching.cards("shop")
        store.add(card(8))
        assert all(earlier is later for earlier, later in zip(before, watching.cards("shop"), strict=False))


def test_a_frozen_bank_does_not_change_with_the_store(store: CardStore) -> None:
    store.add(card(1))
    frozen = FrozenBank.of(store)
    digest = frozen.digest()
    store.add(card(2))
    assert frozen.cards("shop") == (card(1),)
    assert len(frozen) == 1
    assert frozen.digest() == digest != FrozenBank.of(store).digest()


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_any_text_comes_back_as_it_went_in(store: CardStore, text: str) -> None:
    name = store.add(card(msgspec.json.encode(text).hex(), text=text, database=text))
    store.set_status(name, CardStatus.DISABLED, by=text, reason=text)
    change = store.history(name)[-1]
    assert (store.get(name).question.text, change.by, change.reason) == (text, text, text)
    assert text in store.all_databases()
    assert [stored.id for stored in store.find(database=text)] == [name]
    store.delete(name, by="nobody")


def test_a_text_that_is_not_unicode_is_refused_in_one_line(store: CardStore) -> None:
    store.add(card(1))
    with pytest.raises(BankError, match="not valid Unicode"):
        store.set_status("shop-1", CardStatus.DISABLED, by="\udc80")
    assert store.get("shop-1").status is CardStatus.ACTIVE


def test_what_a_transaction_read_of_its_own_is_not_served_after_it_was_rolled_back(store: CardStore) -> None:
    store.add(card(1))
    with store.backend.writing() as connection:
        store.add(card(2))
        assert store.cards("shop") == (card(1), card(2))
        connection.rollback()
    store.add(card(3))
    assert store.cards("shop") == (card(1), card(3))


def test_cards_beyond_the_memory_budget_are_let_go_and_read_again(place: str) -> None:
    with CardStore(place, memory=3_000) as store:
        for database in ("bar", "shop", "zoo"):
            store.add_all(Entry(card=card(number, database=database)) for number in range(5))
        first = store.cards("bar")
        assert store.cards("bar") is first
        for database in ("shop", "zoo"):
            store.cards(database)
        assert store.cards("bar") is not first
        assert store.cards("bar") == first


def test_the_tables_are_those_the_migrations_lead_to(store: CardStore) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with store.backend.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
        assert context.get_current_revision() == HEAD


DEEDS = st.sampled_from(["add", "disable", "enable", "edit", "recount", "delete", "elsewhere"])


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(deeds=st.lists(st.tuples(DEEDS, st.integers(0, 7), st.booleans()), max_size=25))
def test_an_open_store_serves_what_one_opened_now_would(place: str, deeds: list[tuple[str, int, bool]]) -> None:
    """What was done since the last look, here or in another process, is in the next; and nothing else has changed."""
    with CardStore(place) as here, CardStore(place) as there:
        for deed, number, looks in deeds:
            known = [stored.id for stored in there.find(database="shop")]
            name = known[number % len(known)] if known else ""
            if deed in {"add", "elsewhere"} or not name:
                there.add(card(number, database="shop" if deed == "add" else "bar"))
            elif deed == "delete":
                there.delete(name, by="ada")
            elif deed == "edit":
                there.edit(name, by="ada", text=f"Text {number}")
            elif deed == "recount":
                there.edit(name, by="ada", tokens=number)
            else:
                there.set_status(name, CardStatus.ACTIVE if deed == "enable" else CardStatus.DISABLED, by="ada")
            if looks:
                here.cards("shop")
        with CardStore(place) as now:
            assert here.cards("shop") == now.cards("shop")
        assert here.cards("shop") is here.cards("shop")


def test_a_recount_alone_is_told_and_served(store: CardStore) -> None:
    store.add(card(1))
    before = store.cards("shop")[0].tokens
    store.edit("shop-1", by="ada", tokens=before + 1)
    assert store.cards("shop")[0].tokens == before + 1
    assert [change.action for change in store.history("shop-1")] == ["edited tokens"]
