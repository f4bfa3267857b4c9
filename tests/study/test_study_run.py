"""A study runs: settings stay apart, no prompt is sent twice, and a change sends only what is new."""

import csv
import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from itertools import combinations, groupby
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sqlcrystal.config import StudyFile, digest, parse_study
from sqlcrystal.errors import ModelRejected, ModelUnavailable, RecordingMiss
from sqlcrystal.ledger.records import Ledger, Outcome, read_ledger
from sqlcrystal.measurement.settings import accuracy
from sqlcrystal.models.recording import Recording, request_key
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.planning.plan import plan_study
from sqlcrystal.study.opening import Finished, run_study
from sqlcrystal.study.report.facts import Facts
from sqlcrystal.types import Completion, Message, Sampling
from study_player import Player, draw

ARMS: list[dict[str, Any]] = [
    {"name": "none", "retriever": "none", "settings": ["transfer", "repair"]},
    {"name": "k=1", "k": 1},
    {"name": "permuted", "correspondence": "permuted"},
    {"name": "T4", "source": "T4"},
    {"name": "T4 ungated", "base": "T4", "admission": "ungated"},
]
CARDS = "Similar solved"
CONTRASTS = [{"a": "none", "b": "W0", "confirmatory": True}, {"a": "k=1", "b": "W0"}]


def small(*more: dict[str, Any], arms: Sequence[dict[str, Any]] = ARMS, **keys: Any) -> StudyFile:
    """Two databases of Quarry under two seeds."""
    document = {
        "name": "small",
        "benchmark": {"name": "quarry-1", "only": ["clinic", "telecom"]},
        "seeds": [42, 7],
        "max_tokens": 384,
        "arm": [*arms, *more],
        "contrast": CONTRASTS,
    }
    return parse_study({**document, **keys})


@pytest.fixture(scope="module")
def player() -> Player:
    return Player()


@pytest.fixture(scope="module")
def finished(player: Player, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return run_study(small(), tmp_path_factory.mktemp("run"), model=player, jobs=2)


@pytest.fixture
def ledger(finished: Finished) -> Ledger:
    return finished.ledger


def right(rows: Sequence[Outcome]) -> int:
    return sum(row.right for row in rows)


class Timed(Player):
    """A player whose replies take a second each, as a runtime tells it."""

    def __init__(self, runtime: str) -> None:
        super().__init__()
        self.runtime = runtime

    def chat(self, messages: Sequence[Message], *, sampling: Sampling = Sampling()) -> Completion:
        return replace(super().chat(messages, sampling=sampling), seconds=1.0, runtime=self.runtime)


def test_a_plan_does_not_divide_the_time_of_replies_that_are_written_together(tmp_path: Path) -> None:
    minutes = {}
    for runtime in ("alone", "batched, torch 2"):
        folder = tmp_path / runtime[:5]
        run_study(replace(small(), arms=("none",)), folder, model=Timed(runtime), jobs=1)
        minutes[runtime] = plan_study(small(), folder / "recording.sqlite", model=Timed(runtime)).minutes
    assert minutes["batched, torch 2"] == pytest.approx(4 * minutes["alone"], rel=0.05)


def test_every_arm_is_complete_and_measured_in_its_settings(ledger: Ledger) -> None:
    counts = Counter((row.arm, row.setting) for row in ledger.outcomes)
    held_out = counts["none", "transfer"]
    assert {(arm, setting) for arm, setting in counts if arm in ("none", "W0")} == {
        *(("none", setting) for setting in ("transfer", "repair")),
        *(("W0", setting) for setting in ("collection", "transfer", "replay", "retention", "rerun")),
    }
    assert {counts[arm["name"], "transfer"] for arm in ARMS} == {held_out}
    assert ledger.manifest.left_out == ()
    assert held_out + counts["W0", "collection"] == 2 * len({(row.database, row.question) for row in ledger.outcomes})


def test_no_prompt_is_sent_twice(finished: Finished, player: Player) -> None:
    keys = [request_key(player.digest, *asked) for asked in zip(player.prompts, player.samplings, strict=True)]
    assert len(keys) == len(set(keys)) == finished.sent


def test_prompts_that_start_alike_are_asked_one_after_the_other_over_all_seeds(tmp_path: Path) -> None:
    player = Player()
    run_study(
        small(arms=(), contrast=[], default={"name": "W0", "settings": ["transfer"]}), tmp_path, model=player, jobs=1
    )
    starts = [prompt[1].content.partition("[Question]")[0] for prompt in player.prompts if CARDS in prompt[1].content]
    assert len([start for start, _ in groupby(starts)]) == len(set(starts)) < len(starts)


def test_held_out_questions_are_never_banked(ledger: Ledger) -> None:
    for seed in ledger.manifest.seeds:
        held_out = {row.question for row in ledger.of("none", "transfer") if row.seed == seed}
        assert not held_out & {card.question_id for card in ledger.cards if card.seed == seed}


def test_the_bank_holds_the_repaired_questions_in_file_order(ledger: Ledger) -> None:
    rows = [row for row in ledger.of("W0", "collection") if row.seed == 42 and row.right and not row.first_right]
    cards = [card for card in ledger.cards if card.arm == "W0" and card.seed == 42]
    assert [card.question_id for card in cards] == [row.question for row in rows]
    assert all(card.right and card.source == "T3" and card.signal == "oracle" for card in cards)


def test_replay_sees_the_questions_own_card_and_retention_never_does(ledger: Ledger) -> None:
    own = {(card.seed, card.question_id): card.id for card in ledger.cards if card.arm == "W0"}
    replay, retention = ledger.of("W0", "replay"), ledger.of("W0", "retention")
    assert {(row.seed, row.question) for row in replay} == set(own) == {(row.seed, row.question) for row in retention}
    assert all(own[row.seed, row.question] in row.cards for row in replay)
    assert not any(own[row.seed, row.question] in row.cards for row in retention)
    assert right(replay) > right(retention)


def test_the_rerun_floor_asks_the_banked_questions_a_second_time_without_memory(ledger: Ledger, player: Player) -> None:
    rows = ledger.of("W0", "rerun")
    assert {(row.seed, row.question) for row in rows} == {(r.seed, r.question) for r in ledger.of("W0", "replay")}
    assert all(row.run == 1 and row.cards == () and row.calls == 1 for row in rows)
    greedy = [sampling for sampling in player.samplings if sampling.index == 1 and sampling.temperature == 0]
    assert len(greedy) == len({row.question for row in rows})


def test_repair_of_held_out_questions_starts_from_the_floor_and_only_adds(ledger: Ledger) -> None:
    floor, repair = ledger.of("none", "transfer"), ledger.of("none", "repair")
    assert [row.right for row in floor] == [row.first_right for row in repair]
    assert all(row.right for row in repair if row.first_right)
    assert right(repair) > right(floor)
    assert all(row.rounds == 0 for row in repair if row.first_right)
    repaired = [row for row in repair if not row.first_right]
    assert all(1 <= row.rounds <= 3 for row in repaired)
    # One call for the first attempt, one in T3's first round unless the query gave it nothing to look at, then two.
    assert all(2 * row.rounds <= row.calls <= 1 + 2 * row.rounds for row in repaired)


class Drifting(Player):
    """A player that answers the same question without memory otherwise whenever it is asked again."""

    def reply(self, messages: Sequence[Message], sampling: Sampling) -> str:
        """As a player that never answers twice from the same mood."""
        user = messages[1].content
        if CARDS in user or sampling.temperature or "correcting" in messages[0].content or "[Question]" not in user:
            return super().reply(messages, sampling)
        case = self.cases[self.question_in(user)]
        return f"```sql\n{case.sql if draw(case.question.id, sampling.index) < 50 else case.wrong[0]}\n```"


@pytest.mark.parametrize("anew", [False, True])
def test_answers_without_memory_are_asked_anew_for_every_seed_where_the_study_says_so(
    tmp_path: Path, anew: bool
) -> None:
    bare = {"name": "none", "retriever": "none", "settings": ["transfer", "repair"]}
    study = small(
        arms=[bare],
        contrast=CONTRASTS[:1],
        bare_per_seed=anew,
        default={"name": "W0", "settings": ["transfer", "cause"]},
    )
    ledger = run_study(study, tmp_path, model=Drifting(), jobs=2).ledger
    floor, repair = ledger.of("none", "transfer"), ledger.of("none", "repair")
    by_question: dict[str, set[bool]] = {}
    for row in floor:
        by_question.setdefault(row.question, set()).add(row.right)
    assert any(len(verdicts) == 2 for verdicts in by_question.values()) is anew
    assert ([row.right for row in floor] != [row.first_right for row in repair]) is anew
    assert Facts(ledger).shares_bare_answers is not anew
    bare_answers = {(row.seed, row.question): row.right for row in floor}
    changed = {
        (row.seed, row.question)
        for row in ledger.of("W0", "transfer")
        if row.cards and row.right != bare_answers[row.seed, row.question]
    }
    assert {(row.seed, row.question) for row in ledger.of("W0", "cause")} == changed


def test_a_study_that_shares_its_bare_answers_keeps_the_digest_that_it_had() -> None:
    assert digest(small()) == digest(small(bare_per_seed=False)) != digest(small(bare_per_seed=True))


def test_permuting_keeps_which_cards_are_shown_and_their_scores(ledger: Ledger) -> None:
    aligned, permuted = ledger.of("W0", "transfer"), ledger.of("permuted", "transfer")
    assert [(row.cards, row.scores) for row in aligned] == [(row.cards, row.scores) for row in permuted]
    banks = {arm: [card for card in ledger.cards if card.arm == arm] for arm in ("W0", "permuted")}
    assert sorted(card.sql for card in banks["W0"]) == sorted(card.sql for card in banks["permuted"])
    size = Counter((card.seed, card.database) for card in banks["W0"])
    for card, twin in zip(banks["W0"], banks["permuted"], strict=True):
        assert card.id == twin.id
        assert (card.sql == twin.sql) == (size[card.seed, card.database] == 1)


def test_a_narrower_window_shows_the_best_of_the_wider_one(ledger: Ledger) -> None:
    pairs = zip(ledger.of("W0", "transfer"), ledger.of("k=1", "transfer"), strict=True)
    assert all(wide.cards[:1] == narrow.cards for wide, narrow in pairs)


def test_an_ungated_bank_holds_wrong_cards_and_its_gated_twin_none(ledger: Ledger) -> None:
    bits = {arm: [card.right for card in ledger.cards if card.arm == arm] for arm in ("T4", "T4 ungated")}
    assert all(bits["T4"])
    assert not all(bits["T4 ungated"])
    assert len(bits["T4 ungated"]) > 0


def test_results_are_a_row_per_answer_in_csv_and_parquet(finished: Finished) -> None:
    import pyarrow.parquet as pq

    with (finished.folder / "results.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    manifest = finished.ledger.manifest
    assert len(rows) == len(finished.ledger.outcomes)
    identities = {(row["version"], row["digest"], row["model"]) for row in rows}
    assert identities == {(manifest.version, manifest.digest, manifest.model)}
    assert {row["seed"] for row in rows} == {"42", "7"}
    assert {row["rule bird"] for row in rows} == {"0", "1"}
    table = pq.read_table(finished.folder / "results.parquet")
    assert table.num_rows == len(rows)
    assert table.column("sql").to_pylist() == [row["sql"] or None for row in rows]
    assert read_ledger(finished.folder) == finished.ledger


def test_the_logs_hold_requests_replies_cards_and_the_repair_trajectory(finished: Finished, player: Player) -> None:
    lines = [json.loads(line) for line in (finished.folder / "log" / "W0-transfer-42.jsonl").read_text().splitlines()]
    rows = [row for row in finished.ledger.of("W0", "transfer") if row.seed == 42]
    assert {line["question"] for line in lines} == {row.question for row in rows}
    line = next(line for line in lines if line["retrieved"])
    [call] = line["calls"]
    prompt = line["prompts"][call["prompt"]]
    assert all(text in prompt[1]["content"] for _, _, text in line["retrieved"])
    with Recording(finished.folder / "recording.sqlite") as recording:
        entry = recording.entry(call["key"])
    assert entry is not None
    assert entry.completion.text == call["completion"]["text"]
    repairs = (finished.folder / "log" / "none-repair-42.jsonl").read_text().splitlines()
    rounds = [spent for line in map(json.loads, repairs) for spent in line["rounds"]]
    assert any(spent["probes"] for spent in rounds)
    assert any(spent["accepted"] for spent in rounds)


def test_running_again_sends_nothing_and_writes_the_same_bytes(finished: Finished, tmp_path: Path) -> None:
    names = ["results.csv", "results.parquet", *(f"log/{path.name}" for path in (finished.folder / "log").iterdir())]
    before = {name: (finished.folder / name).read_bytes() for name in names}
    again = run_study(small(), finished.folder, model=Player(), jobs=1)
    assert again.sent == 0
    assert {name: (finished.folder / name).read_bytes() for name in names} == before
    assert replace(again.ledger, manifest=finished.ledger.manifest) == finished.ledger


def shown_before(folder: Path) -> set[tuple[str, str]]:
    """Every pair of cards that some prompt of the default arm shows, the earlier first."""
    pairs = set()
    for line in (folder / "log" / "W0-transfer-42.jsonl").read_text().splitlines():
        answer = json.loads(line)
        prompt = json.dumps(answer["prompts"])
        texts = sorted(
            (text for _, _, text in answer["retrieved"]), key=lambda text: prompt.find(json.dumps(text)[1:-1])
        )
        pairs |= set(combinations(texts, 2))
    return pairs


def test_cards_in_stable_order_stand_alike_in_every_prompt(finished: Finished, tmp_path: Path) -> None:
    run_study(small(arms=ARMS[:1], contrast=[], card_order="stable"), tmp_path, model=Player(), jobs=2)
    stable, by_rank = shown_before(tmp_path), shown_before(finished.folder)
    assert not any((second, first) in stable for first, second in stable)
    assert any((second, first) in by_rank for first, second in by_rank)


def copied(finished: Finished, tmp_path: Path) -> Path:
    """A new run folder that starts from the finished run's recording."""
    with Recording(finished.folder / "recording.sqlite") as old, Recording(tmp_path / "recording.sqlite") as new:
        new.add(old.entries())
    return tmp_path


def test_changing_one_arm_sends_only_that_arms_new_prompts(finished: Finished, tmp_path: Path) -> None:
    study = small({"name": "k=2", "k": 2})
    folder = copied(finished, tmp_path)
    planned = plan_study(study, folder / "recording.sqlite", model=Player())
    changed = run_study(study, folder, model=(player := Player()), jobs=2)
    wide = [row for row in changed.ledger.of("k=2", "transfer") if len(row.cards) == 2]
    distinct = {(row.question, row.cards) for row in wide}
    assert 0 < changed.sent <= len(distinct)
    assert all("[Relevant experience" in messages[1].content for messages in player.prompts)
    assert planned.calls == changed.sent
    assert {part.arm for part in planned.work if part.calls} == {"k=2"}
    kept = [row for row in changed.ledger.outcomes if row.arm != "k=2"]
    assert kept == list(finished.ledger.outcomes)


def test_changing_only_the_rule_sends_nothing_and_reads_the_answers_anew(finished: Finished, tmp_path: Path) -> None:
    scored = run_study(small(rule="bag"), copied(finished, tmp_path), model=Player(), jobs=2)
    assert scored.sent == 0
    assert scored.ledger.manifest.digest != finished.ledger.manifest.digest
    assert [row.sql for row in scored.ledger.outcomes] == [row.sql for row in finished.ledger.outcomes]
    assert all(row.right == row.rules["bag"] for row in scored.ledger.outcomes)


def test_another_seed_reuses_first_attempts_and_repairs(finished: Finished, tmp_path: Path) -> None:
    more = run_study(small(seeds=[42, 7, 13]), copied(finished, tmp_path), model=(player := Player()), jobs=2)
    assert more.sent < finished.sent / 2
    bare = [asked for asked in zip(player.prompts, player.samplings, strict=True) if asked[1].index == 0]
    assert not any(
        "experience" not in messages[1].content and messages[0].content.startswith("You are an expert")
        for messages, _ in bare
    )


def test_a_plan_of_a_finished_study_has_nothing_to_send(finished: Finished) -> None:
    planned = plan_study(small(), finished.folder / "recording.sqlite", model=Player())
    assert planned.calls == 0
    assert planned.recorded == finished.sent
    assert planned.measured


def test_a_plan_from_nothing_counts_first_attempts_exactly_and_asks_no_model(tmp_path: Path) -> None:
    player = Player()
    planned = plan_study(small(prices={"prompt": 1.0, "completion": 2.0}), tmp_path / "none.sqlite", model=player)
    first = planned.work[0]
    assert (first.setting, first.known, first.guessed) == ("first attempts", len(player.clinic_and_telecom()), 0)
    assert player.prompts == []
    assert not (tmp_path / "none.sqlite").exists()
    assert planned.money == pytest.approx((planned.prompt_tokens + 2 * planned.completion_tokens) / 1e6, rel=1e-3)


def test_a_plan_guesses_within_a_factor_of_two_of_what_is_sent(finished: Finished, tmp_path: Path) -> None:
    planned = plan_study(small(), tmp_path / "none.sqlite", model=Player())
    assert 0.5 <= planned.calls / finished.sent <= 2


class Failing(Player):
    """A player whose endpoint fails for one question while `broken`."""

    broken = True

    def chat(self, messages: Sequence[Message], *, sampling: Sampling = Sampling()) -> Completion:
        """Fail for the chosen question."""
        if self.broken and self.unlucky in messages[1].content and "[Relevant" in messages[1].content:
            raise ModelUnavailable("the endpoint is away")
        return super().chat(messages, sampling=sampling)

    @property
    def unlucky(self) -> str:
        """A question that is held out under seed 42."""
        return self.chosen


def test_an_error_is_retried_next_time_and_never_cached(finished: Finished, tmp_path: Path) -> None:
    model = Failing()
    row = next(row for row in finished.ledger.of("W0", "transfer") if row.seed == 42 and row.cards)
    model.chosen = finished.ledger.questions[row.question]
    study = small(arms=ARMS[:1], contrast=CONTRASTS[:1], seeds=[42])
    first = run_study(study, tmp_path, model=model, jobs=2)
    assert "W0/transfer" in first.ledger.manifest.left_out
    assert first.left_out["W0/transfer"] == "the endpoint is away"
    assert first.ledger.of("W0", "transfer") == ()
    assert len(first.ledger.of("none", "transfer")) > 0
    model.broken = False
    second = run_study(study, tmp_path, model=model, jobs=2)
    assert second.ledger.manifest.left_out == ()
    assert second.sent == 1
    expected = [row for row in finished.ledger.of("W0", "transfer") if row.seed == 42]
    assert list(second.ledger.of("W0", "transfer")) == expected


class Refusing(Failing):
    """A player whose endpoint refuses one question's prompt for good."""

    def chat(self, messages: Sequence[Message], *, sampling: Sampling = Sampling()) -> Completion:
        """Refuse the chosen question, with memory or without."""
        if self.chosen in messages[1].content.rpartition("[Question]")[2]:
            raise ModelRejected("the prompt is too long")
        return Player.chat(self, messages, sampling=sampling)


def test_a_refused_prompt_is_unevaluable_and_counts_as_wrong(finished: Finished, tmp_path: Path) -> None:
    model = Refusing()
    row = next(row for row in finished.ledger.of("none", "transfer") if row.seed == 42)
    model.chosen = finished.ledger.questions[row.question]
    done = run_study(small(arms=ARMS[:1], contrast=CONTRASTS[:1], seeds=[42]), tmp_path, model=model, jobs=2)
    assert done.left_out == {}
    refused = [outcome for outcome in done.ledger.outcomes if outcome.question == row.question]
    assert {(outcome.kind, outcome.right, outcome.sql) for outcome in refused} == {("unevaluable", False, None)}
    assert {outcome.setting for outcome in refused} == {"transfer", "repair"}
    counted = accuracy(done.ledger.of("none", "transfer"))
    assert counted.evaluable == counted.n - 1


def test_a_question_whose_gold_fails_is_unevaluable_and_never_repaired(tmp_path: Path) -> None:
    (tmp_path / "shop.sqlite").write_bytes(b"")
    with sqlite3.connect(tmp_path / "shop.sqlite") as connection:
        connection.execute("CREATE TABLE item (id INTEGER, kind TEXT)")
    connection.close()
    gold = ["SELECT COUNT(*) FROM item", "SELECT nothing FROM nowhere"]
    lines = [{"id": str(n), "question": f"Question {n}?", "sql": gold[n % 2], "database": "shop"} for n in range(12)]
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, lines)))
    study = small(arms=ARMS[:1], contrast=CONTRASTS[:1], benchmark={"name": "own", "data": str(tmp_path)}, seeds=[42])
    model = ScriptedModel({"": "```sql\nSELECT COUNT(*) FROM item\n```"})
    done = run_study(study, tmp_path / "run", model=model, jobs=1)
    kinds = {int(row.question) % 2: row.kind for row in done.ledger.outcomes}
    assert kinds == {0: "match", 1: "unevaluable"}
    assert done.sent == 12
    assert done.ledger.cards == ()


def test_a_run_without_time_keeps_what_it_finished_and_goes_on_later(tmp_path: Path) -> None:
    study = small(arms=ARMS[:1], contrast=CONTRASTS[:1], seeds=[42])
    first = run_study(study, tmp_path, model=Player(delay=0.02), jobs=2, minutes=0.5 / 60)
    assert "W0/transfer" in first.left_out
    second = run_study(study, tmp_path, model=Player(), jobs=2)
    whole = run_study(study, tmp_path / "whole", model=Player(), jobs=2)
    assert second.left_out == {}
    assert first.sent + second.sent == whole.sent
    assert second.ledger.outcomes == whole.ledger.outcomes


def test_replay_reports_what_its_recording_covers_and_lists_the_rest(finished: Finished, tmp_path: Path) -> None:
    recordings = [str(finished.folder / "recording.sqlite")]
    study = small({"name": "k=2", "k": 2}, mode="replay", recordings=recordings)
    replayed = run_study(study, tmp_path, model=Player(), jobs=2)
    assert replayed.sent == 0
    assert replayed.ledger.manifest.left_out == ("k=2/transfer",)
    assert replayed.ledger.outcomes == finished.ledger.outcomes
    assert "k=2" in {arm.name for arm in replayed.ledger.manifest.arms}, (
        "a report tells unrecorded arms from absent ones"
    )


def test_replay_of_another_model_says_what_is_missing(finished: Finished, tmp_path: Path) -> None:
    recordings = [str(finished.folder / "recording.sqlite")]
    with pytest.raises(RecordingMiss, match="no recorded completion of stranger"):
        run_study(small(mode="replay", recordings=recordings), tmp_path, model=Player(name="stranger"), jobs=2)


def test_the_remaining_arms_of_the_paper_run(finished: Finished, tmp_path: Path) -> None:
    more: list[dict[str, Any]] = [
        {"name": "bank 50%", "bank": "50%"},
        {"name": "success", "source": "success"},
        {"name": "success=W0", "base": "success", "bank": "matched:W0:0"},
        {"name": "union", "source": "union"},
        {"name": "noisy 20%", "admission": "noisy:20%"},
        {"name": "2 passes", "passes": 2},
        {"name": "CoT", "solver": "chain-of-thought"},
        {"name": "explore first", "base": "none", "solver": "explore"},
        {"name": "explore", "source": "explore"},
        *(
            {"name": name, "retriever": name}
            for name in ("foreign", "schema-similar", "random", "bm25", "mmr", "payload")
        ),
        *({"name": name, "writer": name} for name in ("W1", "W2", "W3", "W3+A", "W4", "W5", "W5-lesson")),
    ]
    done = run_study(small(*more, seeds=[42]), copied(finished, tmp_path), model=Player(), jobs=2)
    ledger = done.ledger
    assert done.left_out == {}
    sizes = Counter(card.arm for card in ledger.cards)
    of_each = Counter(card.database for card in ledger.cards if card.arm == "W0")
    assert sizes["bank 50%"] == sum(size // 2 for size in of_each.values())  # rounded down in each, as the paper counts
    explored = ledger.of("explore", "collection")
    assert any(row.first_right for row in explored)
    assert all(row.calls > 1 for row in explored)  # also where the first attempt was right: it may break it
    assert sizes["success=W0"] == sizes["W0"] < sizes["success"]
    assert sizes["union"] == sizes["success"] + sizes["W0"]
    first_pass, both = ledger.of("W0", "collection"), ledger.of("2 passes", "collection")
    still_wrong = [row.question for row in first_pass if not row.right]
    assert [row.question for row in both[len(first_pass) :]] == still_wrong
    assert all(row.cards for row in both[len(first_pass) :] if sizes["W0"] and row.database == "clinic")
    assert {card.right for card in ledger.cards if card.arm == "noisy 20%"} == {True, False}
    databases = {card.id: card.database for card in ledger.cards}
    for arm in ("foreign", "schema-similar"):
        assert all(databases[card] != row.database for row in ledger.of(arm, "transfer") for card in row.cards)
    assert all(row.calls == 2 for row in ledger.of("explore first", "transfer"))
    calls = {arm: sum(row.calls for row in ledger.of(arm, "collection")) for arm in ("W0", "W5")}
    assert calls["W5"] == calls["W0"] + sizes["W5"]
