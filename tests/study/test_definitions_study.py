"""Definitions in a study: an arm shows them on held-out questions, and nothing else of the study changes."""

import csv
import re
from pathlib import Path
from typing import Any

import pytest

from sqlcrystal.config import digest, parse_study, read_study
from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.ledger.records import Ledger, read_ledger
from sqlcrystal.study.design import design
from sqlcrystal.study.opening import preregistration, run_study
from sqlcrystal.study.report.write import write_report
from sqlcrystal.study.world import World
from study_player import Player

STUDIES = Path(__file__).resolve().parents[2] / "studies"
KEY = re.compile(r'"key": ?"(\w+)"')
PLAIN = "f7f9663384ee23004969de36ff843df8d13346a10e1a3cb2e9364d8741a5be3c"
"""As the version before definitions gave it."""
ARMS: list[dict[str, Any]] = [
    {"name": "none", "retriever": "none"},
    {"name": "definitions", "base": "none", "definitions": True},
    {"name": "definitions W0", "definitions": True},
]


def study(file: Path | str, **more: Any) -> dict[str, Any]:
    return {
        "name": "definitions",
        "benchmark": {"name": "quarry-1", "only": ["clinic"]},
        "seeds": [42],
        "budget": 1,
        "definitions": str(file),
        "default": {"name": "W0", "source": "T3-look", "settings": ["transfer"]},
        "arm": ARMS,
        "contrast": [{"a": "none", "b": "definitions", "confirmatory": True}],
        **more,
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Player, Ledger]:
    folder, model = tmp_path_factory.mktemp("definitions") / "run", Player()
    file = folder.parent / "definitions.csv"
    file.write_text("database,term,sql,tables\nclinic,patient,patients.patient_id,patients\n", encoding="utf-8")
    run_study(parse_study(study(file)), folder, model=model)
    write_report(folder)
    return folder, model, read_ledger(folder)


def asked(folder: Path, arm: str) -> list[str]:
    lines = (folder / "log" / f"{arm}-transfer-42.jsonl").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line]


def test_only_the_arms_that_show_them_are_told_and_the_bank_is_collected_without(
    run: tuple[Path, Player, Ledger],
) -> None:
    folder, _, ledger = run
    told = {arm: sum("refers to" in line for line in asked(folder, arm)) for arm in ("none", "W0", "definitions")}
    both = sum("refers to" in line for line in asked(folder, "definitions W0"))
    assert (told["none"], told["W0"]) == (0, 0)
    assert told["definitions"] == both > 0
    collected = (folder / "log" / "W0-collection-42.jsonl").read_text(encoding="utf-8")
    assert "refers to" not in collected
    cards = {arm: {card.id for card in ledger.cards if card.arm == arm} for arm in ("W0", "definitions W0")}
    assert cards["W0"] == cards["definitions W0"]


def test_a_question_without_a_term_is_asked_as_it_was(run: tuple[Path, Player, Ledger]) -> None:
    folder, _, _ = run
    keys = {arm: {call for line in asked(folder, arm) for call in KEY.findall(line)} for arm in ("none", "definitions")}
    plain = {call for line in asked(folder, "definitions") if "refers to" not in line for call in KEY.findall(line)}
    assert plain
    assert plain == keys["none"] & keys["definitions"]


def test_the_report_names_the_factor(run: tuple[Path, Player, Ledger]) -> None:
    folder, _, _ = run
    page = (folder / "report" / "report.md").read_text(encoding="utf-8")
    assert "no cards; definitions beside the question" in page


def test_every_definition_of_quarry_names_a_database_and_runs() -> None:
    world = World.of(read_study(STUDIES / "definitions.toml"))
    try:
        for name in world.benchmark.databases:
            world.definitions.glossary(world.database(name))
        with (STUDIES / "definitions" / "quarry.csv").open(encoding="utf-8", newline="") as lines:
            assert {row["database"] for row in csv.DictReader(lines)} == set(world.benchmark.databases)
    finally:
        world.close()


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("database,term,sql,tables\nnowhere,x,1,t\n", ConfigError, "definitions.csv:2: database"),
        ("database,term,sql,tables\nclinic,woman,no_such = 1,visits\n", DataError, "definitions.csv:2: "),
    ],
)
def test_a_file_that_does_not_fit_is_refused_by_its_line(
    tmp_path: Path, text: str, error: type[Exception], words: str
) -> None:
    file = tmp_path / "definitions.csv"
    file.write_text(text)

    def look() -> None:
        world = World.of(parse_study(study(file)))
        try:
            world.definitions.glossary(world.database("clinic"))
        finally:
            world.close()

    with pytest.raises(error, match=words):
        look()


def test_an_arm_without_a_file_is_refused() -> None:
    with pytest.raises(ConfigError, match="definitions: the study names no file"):
        design(parse_study(study("")))


def test_a_study_without_definitions_keeps_its_digest_and_one_with_them_is_known_by_their_text(tmp_path: Path) -> None:
    plain = parse_study({**study(""), "arm": ARMS[:1], "contrast": []})
    assert digest(plain, model="m") == PLAIN
    one, moved = tmp_path / "a.csv", tmp_path / "b.csv"
    for file in (one, moved):
        file.write_text("database,term,sql,tables\n")
    worlds = [World.of(parse_study(study(file))) for file in (one, moved)]
    first, second = (
        digest(parse_study(study(file)), **w.identities) for file, w in zip((one, moved), worlds, strict=True)
    )
    assert first == second
    moved.write_text("database,term,sql,tables\nclinic,x,1,visits\n")
    assert World.of(parse_study(study(moved))).identities != worlds[0].identities


def test_designs_that_were_frozen_before_are_the_same() -> None:
    study_file = read_study(STUDIES / "quarry.toml")
    world = World.of(study_file)
    try:
        told = preregistration(study_file, design(study_file), world)
    finally:
        world.close()
    assert told is not None
    assert [part for part in told.changed if part.startswith("arm ")] == []


def test_the_shipped_recording_holds_every_call_and_gives_the_figures_of_the_evidence(tmp_path: Path) -> None:
    shipped = read_study(STUDIES / "definitions.toml", ["mode=replay"])
    run_study(shipped, tmp_path)
    right: dict[str, list[bool]] = {}
    for outcome in read_ledger(tmp_path).outcomes:
        if outcome.setting == "transfer":
            right.setdefault(outcome.arm, []).append(outcome.right)
    evidence = (STUDIES.parent / "docs" / "evidence.md").read_text(encoding="utf-8")
    told = evidence[evidence.index("### Definitions") :]
    for arm, name in (
        ("none", "none"),
        ("definitions", "**definitions**"),
        ("definitions W0", "definitions and cards"),
    ):
        assert len(right[arm]) == 540
        assert f"| {name} | {100 * sum(right[arm]) / 540:.1f} % |" in told
