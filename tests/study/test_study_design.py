"""Study files are validated objects: each arm changes one thing, and a mistake is one line naming key and choices."""

from pathlib import Path
from typing import Any

import pytest

from sqlcrystal.benchmarks.cases import Case, Split
from sqlcrystal.config import digest, parse_study, read_study
from sqlcrystal.errors import ConfigError, DataError
from sqlcrystal.study.design import design
from sqlcrystal.study.units import batches
from sqlcrystal.types import Question

CASE = Case(question=Question(id="q", database="d", text="?"), sql="SELECT 1")
STUDIES = Path(__file__).resolve().parents[2] / "studies"
NONE = {"name": "none", "retriever": "none", "settings": ["transfer", "repair"]}


def designed(*arms: dict[str, Any], **keys: Any) -> Any:
    return design(parse_study({"name": "test", "arm": [NONE, *arms], **keys}))


CORRESPONDENCE = {("none", "W0"), ("none", "permuted"), ("permuted", "W0")}
GATE_AND_WIDTH = {("T4 ungated", "T4"), ("k=1", "k=10")}
IN_CONTEXT = {("none", "none/dialogue"), ("none/dialogue", "W0/dialogue")}
BEYOND_THE_PAPER = {("none", "profile"), ("profile", "profile W0"), ("W0", "W0 fallback")}


@pytest.mark.parametrize(
    "path",
    sorted(path for path in STUDIES.glob("*.toml") if path.stem not in ("log", "definitions")),
    ids=lambda path: path.stem,
)
def test_every_bundled_study_of_the_paper_confirms_what_the_paper_does_and_the_evidence_what_its_arms_allow(
    path: Path,
) -> None:
    contrasts = design(read_study(path)).contrasts
    confirmed = {(contrast.a, contrast.b) for contrast in contrasts if contrast.confirmatory}
    ours = BEYOND_THE_PAPER if path.stem in ("quarry", "forty") else set()
    own = {"spider-ten": CORRESPONDENCE, "sparc": IN_CONTEXT}
    assert confirmed == own.get(path.stem, CORRESPONDENCE | GATE_AND_WIDTH | ours)


def test_the_paper_study_has_every_family_of_arms_the_paper_reports() -> None:
    arms = [planned.arm for planned in design(read_study(STUDIES / "paper.toml")).arms]
    assert {arm.writer for arm in arms} == {"W0", "W1", "W2", "W3", "W3+A", "W4", "W5", "W5-lesson"}
    assert {arm.source for arm in arms} == {"T1", "T2", "T3", "T4", "success", "union", "explore"}
    assert {arm.k for arm in arms} == {1, 3, 5, 10}
    retrievers = {"dense", "bm25", "payload", "mmr", "random", "foreign", "schema-similar", "none"}
    assert {arm.retriever for arm in arms} == retrievers
    assert {"full", "50%", "25%", "matched:W0:0", "matched:W0:1"} <= {arm.bank for arm in arms}
    assert {"oracle", "ungated", "noisy:5%", "noisy:10%", "noisy:20%"} == {arm.admission for arm in arms}
    assert {arm.solver for arm in arms} == {"single-shot", "chain-of-thought", "explore"}


def test_the_default_arm_is_the_papers() -> None:
    arm = designed().arm("W0").arm
    chosen = (arm.source, arm.admission, arm.writer, arm.retriever, arm.k, arm.correspondence, arm.bank, arm.solver)
    assert chosen == ("T3", "oracle", "W0", "dense", 5, "aligned", "full", "single-shot")


def test_an_arm_that_changes_two_factors_is_refused_and_both_are_named() -> None:
    with pytest.raises(ConfigError, match=r"arm 'both': differs in writer, k from 'W0'"):
        designed({"name": "both", "writer": "W5", "k": 10})


def test_an_arm_that_changes_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="does not differ"):
        designed({"name": "same", "k": 5})


def test_an_arm_may_change_one_factor_of_another_arm_wherever_that_stands_in_the_file() -> None:
    plan = designed({"name": "ungated", "base": "T4", "admission": "ungated"}, {"name": "T4", "source": "T4"})
    arm = plan.arm("ungated").arm
    assert (arm.source, arm.admission, arm.factor, arm.base) == ("T4", "ungated", "admission", "T4")


@pytest.mark.parametrize(
    ("arm", "complaint"),
    [
        ({"name": "x", "writer": "W9"}, r"arm 'x': writer: unknown value 'W9'; choose from W0, W0-joins"),
        ({"name": "x", "source": "T9"}, r"source: unknown value 'T9'; choose from T1"),
        ({"name": "x", "retriever": "faiss"}, r"retriever: unknown value 'faiss'; choose from bm25"),
        ({"name": "x", "admission": "noisy:0%"}, r"admission: unknown value 'noisy:0%'; choose from"),
        ({"name": "x", "bank": "half"}, r"bank: unknown value 'half'; choose from 50%, full, matched:ARM:DRAW"),
        ({"name": "x", "bank": "matched:T7:0"}, r"matched to: unknown value 'T7'; choose from W0, none"),
        ({"name": "x", "base": "T7", "k": 1}, r"base: unknown value 'T7'"),
        ({"name": "x", "wirter": "W1"}, r"arm 'x': key: unknown value 'wirter'; choose from"),
        ({"name": "x", "k": "ten"}, r"Expected `int \| null`, got `str`"),
        ({"name": "x", "k": 1, "settings": ["reply"]}, r"settings: unknown value 'reply'; choose from"),
        ({"name": "x", "base": "none", "solver": "explore", "settings": ["replay"]}, r"replay needs a bank"),
        ({"name": "none", "k": 1}, r"arm 'none': the name is used twice"),
    ],
)
def test_a_mistake_in_an_arm_is_one_line_naming_the_key_and_the_choices(arm: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as caught:
        designed(arm)
    assert "\n" not in str(caught.value)


def test_an_unknown_key_of_a_study_names_the_choices() -> None:
    with pytest.raises(ConfigError, match=r"key: unknown value 'sedes'; choose from .*seeds"):
        parse_study({"name": "x", "sedes": [1]})


def test_only_verbatim_cards_can_be_permuted() -> None:
    with pytest.raises(ConfigError, match="only W0 cards"):
        designed({"name": "W1", "writer": "W1"}, {"name": "x", "base": "W1", "correspondence": "permuted"})


def test_choosing_arms_keeps_what_they_are_matched_to_and_drops_the_contrasts_of_others() -> None:
    plan = designed(
        {"name": "T1", "source": "T1"},
        {"name": "W0=T1", "bank": "matched:T1:0"},
        {"name": "k=1", "k": 1},
        arms=["W0=T1"],
        contrast=[{"a": "T1", "b": "W0=T1"}, {"a": "k=1", "b": "W0"}],
    )
    assert {planned.name for planned in plan.arms} == {"W0", "W0=T1", "T1"}
    assert [contrast.name for contrast in plan.contrasts] == ["W0=T1 vs T1"]


@pytest.mark.parametrize("seeds", [[99], [42, 42]])
def test_an_arms_own_seeds_are_some_of_the_studys_each_named_once(seeds: list[int]) -> None:
    with pytest.raises(ConfigError, match=r"arm 'k=1': seeds: (unknown value '99'; choose from 13, 42, 7|.* twice)"):
        designed({"name": "k=1", "k": 1, "seeds": seeds})


def test_other_seeds_for_a_study_are_other_seeds_for_its_arms() -> None:
    plan = design(read_study(STUDIES / "quarry.toml", ["seeds=[7]"]))
    assert {planned.seeds for planned in plan.arms} == {(7,)}
    plan = design(read_study(STUDIES / "quarry.toml", ["seeds=[7, 42]"]))
    assert plan.arm("W0").seeds == (7, 42)
    assert plan.arm("bm25").seeds == (42,)


def test_confirmatory_work_comes_before_exploratory_work() -> None:
    splits = {seed: Split(learn=(CASE,), held_out=(CASE,)) for seed in (42, 7, 13)}
    work = batches(design(read_study(STUDIES / "quarry.toml")), splits)
    labels = [batch.label for batch in work]
    first = [
        "first attempts",
        "none/transfer",
        "W0/collection",
        "none/repair",
        "none/engine-repair",
        "W0/transfer",
        "W0/replay",
        "W0/retention",
        "W0/rerun",
    ]
    assert labels[: len(first)] == first
    confirmatory = ["k=1/transfer", "k=10/transfer", "permuted/transfer", "T4/transfer", "T4 ungated/transfer"]
    assert max(map(labels.index, confirmatory)) < min(
        map(labels.index, ["foreign/transfer", "W5/collection", "ungated/transfer"])
    )


def test_overrides_reach_nested_keys_and_read_toml_or_else_text(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('benchmark = "bird"\nrecordings = ["a.jsonl.xz"]\n')
    model = "http://127.0.0.1:1/v1#some/model"
    study = read_study(path, [f"model={model}", "seeds=[42]", "benchmark.only=['a', 'b']", "prices.prompt=0.5"])
    assert study.model == model
    assert study.seeds == (42,)
    assert study.asked.name == "bird"
    assert study.asked.only == ("a", "b")
    assert study.prices.prompt == 0.5
    assert study.name == "mine"
    assert study.recordings == (str(tmp_path / "a.jsonl.xz"),)


URL = "http://127.0.0.1:9/v1#m"


@pytest.mark.parametrize(
    ("written", "overrides", "model"),
    [
        (
            "qwen2.5-coder-1.5b",
            [f"model={URL}", "model.api_key=${MY_KEY}"],
            {"kind": "openai", "base_url": "http://127.0.0.1:9/v1", "name": "m", "api_key": "${MY_KEY}"},
        ),
        (URL, ["model.concurrency=64"], {"kind": "openai", "base_url": URL[:-2], "name": "m", "concurrency": 64}),
        ("qwen2.5-coder-1.5b", ["model.slots=2"], {"kind": "local", "name": "qwen2.5-coder-1.5b", "slots": 2}),
        ("mine.gguf", ["model.slots=2"], {"kind": "local", "path": "mine.gguf", "slots": 2}),
    ],
)
def test_an_override_of_one_key_keeps_what_the_models_short_form_said(
    tmp_path: Path, written: str, overrides: list[str], model: dict[str, object]
) -> None:
    (tmp_path / "s.toml").write_text(f'model = "{written}"')
    assert read_study(tmp_path / "s.toml", overrides).model == model


@pytest.mark.parametrize("override", ["seeds", "=1", "seeds=[]", "seeds=[1, 1]", "budget=0"])
def test_a_bad_override_is_refused(tmp_path: Path, override: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("")
    with pytest.raises(ConfigError):
        read_study(path, [override])


def test_a_study_file_that_is_not_there_or_not_toml_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.toml: cannot be read"):
        read_study(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("name =")
    with pytest.raises(ConfigError, match="not TOML"):
        read_study(tmp_path / "bad.toml")


def test_the_digest_names_what_is_measured_and_not_where_files_lie() -> None:
    plain = parse_study({"name": "x"})
    moved = parse_study({"name": "x", "recordings": ["/elsewhere"], "mode": "replay"})
    wider = parse_study({"name": "x", "arm": [{"name": "k=1", "k": 1}]})
    assert digest(plain, model="m") == digest(moved, model="m")
    assert digest(plain, model="m") != digest(wider, model="m")
    assert digest(plain, model="m") != digest(plain, model="n")


def test_two_contrasts_of_one_name_are_refused() -> None:
    twice = [{"a": "none", "b": "W0", "name": "lift"}, {"a": "W0", "b": "k=1", "name": "lift"}]
    arms = [{"name": "none", "retriever": "none"}, {"name": "k=1", "k": 1}]
    with pytest.raises(ConfigError, match="contrast 'lift': the name is used twice"):
        design(parse_study({"name": "twice", "arm": arms, "contrast": twice}))


def test_a_study_of_fewer_arms_keeps_the_family_that_its_file_designates() -> None:
    few = design(read_study(STUDIES / "paper.toml", ['arms=["none"]']))
    designated = [contrast.name for contrast in few.contrasts if contrast.confirmatory]
    assert designated == ["W0 vs none", "T4 vs T4 ungated", "k=10 vs k=1", "permuted vs none", "W0 vs permuted"]
