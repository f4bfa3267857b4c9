"""What every store promises of answers, verdicts and tokens, in SQLite and in PostgreSQL."""

from collections.abc import Iterator
from contextlib import closing, nullcontext

import msgspec
import pytest
import sqlalchemy as sa

from cardbox import card, episode
from sqlcrystal.bank import (
    AnswerRecord,
    CardUse,
    DatabaseLocation,
    Decision,
    Proposal,
    Scope,
    Store,
    Verdict,
    migrations,
)
from sqlcrystal.bank.backend import open_backend
from sqlcrystal.bank.records import Drawn
from sqlcrystal.bank.tables import metadata
from sqlcrystal.errors import BankError, ConfigError, SqlcrystalError
from sqlcrystal.types import Admission, CardId, CardStatus


@pytest.fixture
def store(place: str) -> Iterator[Store]:
    with Store(place) as opened:
        yield opened


def answer(number: int | str, **changed: object) -> AnswerRecord:
    given = AnswerRecord(
        id=f"answer-{number}",
        database="shop",
        question=f"How many items cost {number}?",
        at="2026-03-01T00:00:00+00:00",
        asked_by="ada",
        sql=f"SELECT {number}",
        columns=("n",),
        rows=((number,),),
        row_count=1,
        calls=1,
        prompt_tokens=100,
        completion_tokens=10,
        seconds=0.5,
    )
    return msgspec.structs.replace(given, **changed)


def confirm(store: Store, name: str, *, by: str = "ada", number: int | str = 1) -> Decision:
    """A verdict that banks a card, as serving gives it."""
    banked = card(number, signal="user", by=by)
    return store.decisions.decide(
        name, Verdict.CONFIRMED, by=by, signal="user", bank=lambda: store.bank.add(banked, episode(banked))
    ).decision


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_answer_comes_back_equal_with_its_cards_and_trace(store: Store) -> None:
    given = answer(1, cards=(CardUse(CardId("c1"), 0.9), CardUse(CardId("c2"), 0.5)), rows=((1, None, "naïve → 表"),))
    assert store.answers.save(given, episode(card(1)))
    assert store.answers.get("answer-1") == given
    assert store.answers.trace("answer-1") == episode(card(1))


def test_an_answer_is_kept_once_under_its_id_as_it_was_first_given(store: Store) -> None:
    assert store.answers.save(answer(1, cards=(CardUse(CardId("c1"), 0.9),)))
    assert not store.answers.save(answer(1, sql="SELECT 2", cards=(CardUse(CardId("c2"), 0.1),)))
    assert store.answers.get("answer-1").sql == "SELECT 1"
    assert store.answers.leaning_on([CardId("c2")]) == []


def test_the_start_of_an_answers_id_will_do_where_only_one_has_it(store: Store) -> None:
    store.answers.save(answer(11))
    store.answers.save(answer(12))
    assert store.answers.get("answer-12") == answer(12)
    with pytest.raises(BankError, match="several ids start so"):
        store.answers.get("answer-1")
    with pytest.raises(BankError, match="answer 'nobody': not in"):
        store.answers.get("nobody")


def test_answers_to_one_question_are_found_however_it_was_laid_out(store: Store) -> None:
    for number, text in enumerate(["How many items?", "  how many\nITEMS", "How many shops?"]):
        store.answers.save(answer(number, question=text))
    store.answers.save(answer(3, question="How many items?", database="bar"))
    answers = store.answers.recent(database="shop", question="how many items")
    assert [answer.id for answer in answers] == ["answer-1", "answer-0"]


# ── verdicts ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_verdict_is_remembered_with_who_when_and_the_card_it_made(store: Store) -> None:
    store.answers.save(answer(1))
    decision = confirm(store, "answer-1")
    assert (decision.by, decision.signal, decision.card, decision.replaced) == ("ada", "user", "shop-1", "")
    assert store.answers.verdict("answer-1") == "confirmed"
    assert store.bank.get("shop-1").admission.by == "ada"


def test_the_same_verdict_again_makes_nothing_twice(store: Store) -> None:
    store.answers.save(answer(1))
    first = confirm(store, "answer-1")
    again = store.decisions.decide(
        "answer-1", Verdict.CONFIRMED, by="bo", signal="user", bank=lambda: store.bank.add(card(2))
    )
    assert (again.decision, again.new) == (first, False)
    assert len(store.decisions.all()) == 1
    assert len(store.bank.find()) == 1


def test_a_later_verdict_replaces_the_earlier_one_and_both_are_kept(store: Store) -> None:
    store.answers.save(answer(1))
    first = confirm(store, "answer-1")
    decided = [
        store.decisions.decide("answer-1", verdict, by="bo", signal="user").decision
        for verdict in (Verdict.REJECTED, Verdict.UNDONE, Verdict.REJECTED)
    ]
    assert [decision.replaced for decision in decided] == [first.id, decided[0].id, decided[1].id]
    assert store.decisions.all(answer="answer-1") == [first, *decided]
    assert store.answers.verdict("answer-1") == "rejected"


def test_a_verdict_whose_card_cannot_be_banked_is_not_given(store: Store) -> None:
    store.answers.save(answer(1))

    def refuse() -> str:
        store.bank.add(card(1))
        raise BankError("no room")

    with pytest.raises(BankError, match="no room"):
        store.decisions.decide("answer-1", Verdict.CONFIRMED, by="ada", signal="user", bank=refuse)
    assert store.decisions.all() == []
    assert store.answers.verdict("answer-1") == ""
    assert store.bank.find() == []


def test_a_proposal_waits_until_somebody_decides_on_it(store: Store) -> None:
    store.answers.save(answer(1))
    proposal = Proposal(
        id="p1", database="shop", answer="answer-1", at="2026-03-01", sql="SELECT 2", episode=episode(card(1))
    )
    assert store.decisions.propose(proposal)
    assert not store.decisions.propose(proposal)
    assert store.decisions.proposals(database="shop") == [proposal]
    store.decisions.decide("answer-1", Verdict.CORRECTED, by="ada", signal="user", sql="SELECT 2", proposal="p1")
    assert store.decisions.proposals() == []
    assert store.decisions.proposal("p1") == proposal


def test_revoking_a_verifier_disables_its_cards_and_names_the_answers_that_leaned_on_them(store: Store) -> None:
    for number, person in ((1, "ada"), (2, "mallory"), (3, "mallory")):
        store.answers.save(answer(number))
        confirm(store, f"answer-{number}", by=person, number=number)
    store.answers.save(answer(4, cards=(CardUse(CardId("shop-2"), 0.8),)))
    store.answers.save(answer(5, cards=(CardUse(CardId("shop-1"), 0.8),)))
    revocation = store.revoke(by="mallory", revoked_by="ada", reason="careless")
    assert [revoked.id for revoked in revocation.cards] == ["shop-2", "shop-3"]
    assert [answer.id for answer in revocation.leaned] == ["answer-4"]
    assert [served.id for served in store.bank.cards("shop")] == ["shop-1"]
    assert [store.answers.verdict(f"answer-{n}") for n in (1, 2, 3)] == ["confirmed", "revoked", "revoked"]
    assert [judged.answer for judged in store.answers.judged()] == ["answer-1"]
    assert store.bank.history("shop-2")[-1].reason == "careless"


def test_revoking_twice_decides_once(store: Store) -> None:
    store.bank.add(card(1, signal="external"))
    store.revoke(signal="external", revoked_by="ada")
    assert store.revoke(signal="external", revoked_by="ada").cards == ()
    assert [decision.verdict for decision in store.decisions.all()] == [Verdict.REVOKED]


def test_a_revocation_since_a_moment_leaves_what_was_admitted_before(store: Store) -> None:
    store.bank.add(card(1, signal="user"))
    assert store.revoke(signal="user", since="2026-02-01", revoked_by="ada").cards == ()
    assert len(store.revoke(signal="user", since="2025-12-01", revoked_by="ada").cards) == 1


# ── what is read from many ───────────────────────────────────────────────────────────────────────────────────────────


def test_what_waits_comes_most_useful_first_and_a_verdict_takes_it_off(store: Store) -> None:
    store.answers.save(answer(1, question="once, agreed"))
    store.answers.save(answer(2, question="once, samples disagree", spread=0.6))
    store.answers.save(answer(3, question="once, a card disagrees", conflict=0.9))
    store.answers.save(answer(4, question="often"))
    store.answers.save(answer(5, question="OFTEN?"))
    store.answers.save(answer(6, question="unseen twin", twin_of="answer-5"))
    store.answers.save(answer(7, question="elsewhere", database="bar"))
    waiting = store.answers.waiting(database="shop")
    assert [(entry.answer.id, entry.asked) for entry in waiting] == [
        ("answer-5", 2),
        ("answer-3", 1),
        ("answer-2", 1),
        ("answer-1", 1),
    ]
    confirm(store, "answer-5")
    assert [entry.answer.id for entry in store.answers.waiting(limit=2)] == ["answer-3", "answer-2"]
    store.decisions.decide("answer-5", Verdict.UNDONE, by="ada", signal="user")
    assert store.answers.waiting()[0].answer.id == "answer-5"


def test_what_chance_chose_waits_first_and_a_later_answer_does_not_take_its_place(store: Store) -> None:
    for number, question in enumerate(("often", "often", "chosen", "chosen")):
        store.answers.save(answer(number, question=question, audit=number == 2))
    store.answers.save(answer(8, question="elsewhere", database="bar", audit=True))
    waiting = store.answers.waiting(database="shop")
    assert [(entry.answer.id, entry.asked) for entry in waiting] == [("answer-2", 2), ("answer-1", 2), ("answer-3", 2)]
    assert [entry.answer.id for entry in store.answers.waiting(limit=1)] == ["answer-2"]
    assert store.answers.audited_on("2026-03-01", database="shop", question="CHOSEN?")
    assert not store.answers.audited_on("2026-03-02", database="shop", question="chosen")
    store.decisions.decide("answer-2", Verdict.REJECTED, by="ada", signal="user")
    assert [entry.answer.id for entry in store.answers.waiting(database="shop")] == ["answer-1", "answer-3"]


def test_drawn_questions_are_counted_once_a_day_whether_judged_or_not(store: Store) -> None:
    for number, question in enumerate(("judged once", "judged once", "never judged", "in trouble")):
        trouble = question == "in trouble"
        store.answers.save(answer(number, question=question, share=0.5, audit=trouble, trouble=trouble))
    store.answers.save(answer(7, question="not drawn"))
    store.answers.save(answer(8, question="alike", share=0.5, memory=False, result_digest="same"))
    store.answers.save(answer(9, question="alike", share=0.5, twin_of="answer-8", result_digest="same"))
    store.decisions.decide("answer-1", Verdict.CONFIRMED, by="ada", signal="user")

    def told(kinds: list[Drawn]) -> list[tuple[object, ...]]:
        return [(kind.memory, kind.both, kind.settled, kind.trouble, kind.asked, kind.judged) for kind in kinds]

    assert told(store.answers.drawn("shop")) == [
        (False, True, True, None, 1, 0),
        (True, False, False, False, 2, 1),
        (True, False, False, True, 1, 0),
    ]
    assert told(store.answers.drawn("shop", audit=True)) == [(True, False, False, True, 1, 0)]
    assert store.answers.drawn("shop", since="2026-03-02") == []


def test_live_measurement_sees_each_arm_with_its_verdicts_and_costs(store: Store) -> None:
    for number in range(6):
        store.answers.save(answer(number, memory=number % 2 == 0, replayed=number == 4))
    for number, verdict in ((0, Verdict.CONFIRMED), (1, Verdict.REJECTED), (2, Verdict.CORRECTED), (3, Verdict.UNDONE)):
        store.decisions.decide(f"answer-{number}", verdict, by="ada", signal="user")
    assert [(judged.answer, judged.memory, judged.right) for judged in store.answers.judged(database="shop")] == [
        ("answer-0", True, True),
        ("answer-1", False, False),
        ("answer-2", True, False),
    ]
    without, with_memory = store.answers.traffic(database="shop")
    assert (without.memory, without.answers, without.judged, without.right) == (False, 3, 1, 0)
    assert (with_memory.answers, with_memory.judged, with_memory.right, with_memory.replayed) == (3, 2, 1, 1)
    assert (with_memory.prompt_tokens, with_memory.calls, with_memory.seconds) == (300, 3, 1.5)


def test_a_cards_effect_is_how_judged_answers_fared_with_it(store: Store) -> None:
    for number, verdict in enumerate((Verdict.CONFIRMED, Verdict.CONFIRMED, Verdict.REJECTED)):
        store.answers.save(answer(number, cards=(CardUse(CardId("c1"), 0.9),)))
        store.decisions.decide(f"answer-{number}", verdict, by="ada", signal="user")
    store.answers.save(answer(9, cards=(CardUse(CardId("c1"), 0.9),)))
    (effect,) = store.answers.effects("shop")
    assert (effect.card, effect.used, effect.right, effect.wrong) == ("c1", 3, 2, 1)


# ── tokens ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_token_lets_its_holder_do_what_it_says_and_nothing_else(store: Store) -> None:
    token, grant = store.tokens.issue("bo", [("shop", Scope.ASK), ("*", Scope.JUDGE)], by="ada")
    known = store.tokens.recognise(token)
    assert known == grant
    assert known.person == "bo"
    assert known.allows("shop", Scope.ASK)
    assert known.allows("bar", Scope.JUDGE)
    assert not known.allows("bar", Scope.ASK)
    assert not known.allows("shop", Scope.MANAGE)
    assert store.tokens.recognise(token + "x") is None


def test_a_token_ends_when_it_is_revoked_or_its_time_is_over(store: Store) -> None:
    revoked, grant = store.tokens.issue("bo", [("*", Scope.ASK)], by="ada")
    over, _ = store.tokens.issue("bo", [("*", Scope.ASK)], by="ada", ends_at="2020-01-01")
    store.tokens.revoke(grant.id, by="ada")
    assert store.tokens.recognise(revoked) is None
    assert store.tokens.recognise(over) is None
    with pytest.raises(BankError, match="token 'nobody'"):
        store.tokens.revoke("nobody", by="ada")


def test_the_store_does_not_hold_a_token_itself(store: Store) -> None:
    token, _ = store.tokens.issue("bo", [("*", Scope.ASK)], by="ada")
    assert token not in everything(store)


# ── forgetting ───────────────────────────────────────────────────────────────────────────────────────────────────────


def everything(store: Store) -> str:
    """Every cell of every table, as text."""
    cells = []
    with store.backend.reading() as connection:
        for table in metadata.sorted_tables:
            for row in connection.execute(sa.select(table)):
                cells += [cell.decode() if isinstance(cell, bytes) else str(cell) for cell in row]
    return "\n".join(cells)


def fill(store: Store, secret: str) -> None:
    """The secret in every place where the serving loop may leave a user's words, and one record without it."""
    named = card(1, text=f"Who is {secret}?", sql=f"SELECT '{secret}'", signal="user", by="ada")
    other = card(2)
    store.answers.save(answer(1, question=f"Who is {secret}?", rows=((secret,),)), episode(named))
    store.answers.save(answer(2, error=f"no such column {secret}"))
    store.answers.save(answer(3), episode(named))
    store.bank.add(named, episode(named))
    store.bank.add(other, episode(named))
    store.bank.edit("shop-2", by="ada", text=f"about {secret}", reason=f"for {secret}")
    store.bank.edit("shop-2", by="ada", text="about nobody")
    store.decisions.propose(Proposal(id="p1", database="shop", answer="answer-1", at="", sql=f"SELECT '{secret}'"))
    store.decisions.decide("answer-3", Verdict.REJECTED, by="ada", signal="user", note=f"{secret} is missing")
    store.decisions.decide("answer-1", Verdict.CONFIRMED, by="ada", signal="user")


def test_a_forgotten_value_is_nowhere_and_what_was_counted_stays_counted(store: Store) -> None:
    fill(store, "Zaphod")
    before = store.answers.traffic()
    report = store.forget(by="ada", value="Zaphod")
    assert "Zaphod" not in everything(store)
    assert (report.cards, report.answers, report.traces, report.proposals) == (1, 2, 1, 1)
    assert [served.id for served in store.bank.cards("shop")] == ["shop-2"]
    assert store.answers.get("answer-3") == answer(3)
    assert store.answers.traffic() == before


def test_a_forgotten_question_is_nowhere_however_it_was_laid_out(store: Store) -> None:
    fill(store, "Zaphod")
    store.forget(by="ada", question="who IS  zaphod")
    left = everything(store)
    assert "Who is Zaphod" not in left
    assert "who is zaphod" not in left


def test_a_forgotten_number_leaves_the_rows_and_no_other_number(store: Store) -> None:
    store.answers.save(answer(1, question="The pay?", sql="SELECT pay", rows=((4711,),)))
    store.answers.save(answer(2, question="The pay?", sql="SELECT pay", rows=((47110,),)))
    store.forget(by="ada", value="4711")
    assert store.answers.get("answer-1").rows is None
    assert store.answers.get("answer-2").rows == ((47110,),)


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        ("Ada O'Brien", "ADA o'brien"),
        ("Ada O'Brien", "name = 'ada o''brien'"),
        ("Ada O'Brien", "LIKE '%Ada%O’Brien%'"),
        ("Ada O'Brien", "'Ada' || ' ' || 'O''Brien'"),
        ("José", "jose\u0301"),
        ("Straße", "STRASSE"),
        ("Ada", "name = x'416461'"),
        ("ada", "name = char(65, 100, 97)"),
        ("Ada", '{"name": "\\u0041da"}'),
        ("1234.5", "pay > 1,234.50"),
        ("1000", "pay = 1e3"),
        ("255", "pay = 0xFF"),
    ],
)
def test_a_value_is_forgotten_in_every_case_and_spelling(store: Store, value: str, spelled: str) -> None:
    store.answers.save(answer(1, question="Q", sql=f"SELECT 1 WHERE {spelled}"))
    assert store.forget(by="bob", value=value).answers == 1
    assert store.answers.get("answer-1").sql is None


@pytest.mark.parametrize(("value", "other"), [("4711", "pay = 47110"), ("Ada", "name = 'Bob'"), ("10", "LIMIT 1")])
def test_another_value_is_not_forgotten(store: Store, value: str, other: str) -> None:
    store.answers.save(answer(1, question="Q", sql=f"SELECT 1 WHERE {other}"))
    assert store.forget(by="bob", value=value).answers == 0


def test_forgetting_needs_either_a_question_or_a_value(store: Store) -> None:
    with pytest.raises(ConfigError, match="either a question or a value"):
        store.forget(by="ada")


# ── two databases ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_look_alike_questions_of_two_databases_stay_apart(store: Store) -> None:
    for database in ("shop", "bar"):
        store.answers.save(answer(database, question="How many items?", database=database))
        store.bank.add(card(database, text="How many items?", database=database))
    for database in ("shop", "bar"):
        assert {answer.database for answer in store.answers.recent(database=database, question="how many items")} == {
            database
        }
        assert {match.database for match in store.bank.find(database=database, question="how many items")} == {database}
        assert {entry.answer.database for entry in store.answers.waiting(database=database)} == {database}
        assert {served.database for served in store.bank.cards(database)} == {database}
    assert store.bank.set_status("bar-bar", CardStatus.DISABLED, by="ada").database == "bar"
    assert len(store.bank.cards("shop")) == 1


# ── bad places ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("bad", "line"),
    [
        ("mysql://host/crystal", "store: unknown value 'mysql'; choose from FILE, postgresql://"),
        ("postgresql://ada:secret@127.0.0.1:1/crystal", "postgresql://ada:***@127.0.0.1:1/crystal: cannot connect"),
        ("postgresql://host:port/crystal", "store: not a URL such as postgresql://"),
        ("/proc/nowhere/store.db", "the bank's folder cannot be made"),
        ("/", "the bank cannot be opened"),
    ],
)
def test_a_place_where_no_store_can_be_is_answered_in_one_line_without_the_password(bad: str, line: str) -> None:
    with pytest.raises(SqlcrystalError) as caught:
        Store(bad)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_store_that_does_not_exist_is_not_made_by_looking(place: str) -> None:
    for _ in range(2):
        with pytest.raises(BankError, match="there is no bank here yet"):
            Store(place, create=False)


def test_a_store_of_a_newer_version_is_refused_and_left_as_it_is(place: str) -> None:
    with Store(place) as store, store.backend.writing() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(BankError, match="the store was made by a newer sqlcrystal"):
        Store(place)


def test_a_store_from_before_causes_opens_with_the_ids_that_its_reasons_named(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reasons = ["replaced by card shop-2", "answer a-1 was rejected", "looks wrong"]
    with monkeypatch.context() as earlier:
        earlier.setattr(migrations, "STEPS", {name: migrations.STEPS[name] for name in sorted(migrations.STEPS)[:6]})
        earlier.setattr(migrations, "HEAD", "0006")
        with closing(open_backend(place)) as backend, backend.writing() as connection:
            columns: list[sa.ColumnClause[str]] = [
                sa.column(name) for name in ("card", "at", "by", "action", "before", "after", "reason")
            ]
            rows = [{column.name: "" for column in columns} | {"card": "shop-1", "reason": text} for text in reasons]
            connection.execute(sa.table("changes", *columns).insert(), rows)
            connection.execute(sa.text("INSERT INTO places VALUES ('shop', 'shop.sqlite', 'm', '2026-03-01')"))
    with Store(place) as store:
        assert [change.cause for change in store.bank.history("shop-1")] == ["shop-2", "a-1", ""]
        assert [change.reason for change in store.bank.history("shop-1")] == reasons
        assert store.locations.all() == [DatabaseLocation(database="shop", url="shop.sqlite", model="m")]


def test_a_moment_is_found_in_whichever_form_it_was_written(store: Store) -> None:
    for number, at in enumerate(["2026-03-01T12:00:00Z", "2026-03-01T12:00:00+00:00", "2026-03-01T13:00:00+01:00"]):
        admission = Admission(signal="user", by="ada", at=at)
        store.bank.add(msgspec.structs.replace(card(number), admission=admission))
    for since, found in (("2026-03-01T12:00:00Z", 3), ("2026-03-01T12:00:00+00:00", 3), ("2026-03-01T12:00:01", 0)):
        assert len(store.bank.find(since=since)) == found


def test_a_writer_that_waits_too_long_for_its_turn_says_so(place: str) -> None:
    with (
        Store(place) as holder,
        Store(place, busy_seconds=0.2) as waiting,
        holder.transaction(),
        pytest.raises(BankError, match="another process has kept the bank locked"),
    ):
        waiting.bank.add(card(1))
    with Store(place) as store:
        store.bank.add(card(1))


def test_a_look_goes_on_when_its_connection_has_ended(store: Store) -> None:
    store.answers.save(answer(1))
    assert store.answers.verdict("answer-1") == ""  # the connection that looked is kept
    if store.backend.dialect == "postgresql":  # a file has no server that could end a connection
        others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        with store.backend.reading() as connection:
            connection.exec_driver_sql(f"{others} AND pid <> pg_backend_pid()").all()
    assert store.answers.get("answer-1") == answer(1)


def test_an_answer_waits_for_nobodys_verdict_where_the_engine_spares_it(store: Store, place: str) -> None:
    one_writer = store.backend.dialect == "sqlite"
    with Store(place, busy_seconds=0.2) as other, store.transaction():
        with pytest.raises(BankError) if one_writer else nullcontext(), other.appending():
            other.answers.save(answer(1))
        assert bool(store.answers.recent()) is not one_writer
