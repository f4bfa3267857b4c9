"""The ledger: the facts of one study, from which a report is generated, in files that are whole or not there.

Its rows, a hundred thousand and more, are kept out of the garbage collector (gc=False), which would walk all of them
again and again while they are read: they cannot form cycles.
"""

from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from sqlcrystal.errors import DataError
from sqlcrystal.types import CardId


def write_whole(path: Path, content: bytes) -> Path:
    """Write beside the file first, then take its place in one step."""
    fresh = path.with_name(path.name + ".tmp")
    fresh.write_bytes(content)
    fresh.replace(path)
    return path


class Arm(Struct, frozen=True, kw_only=True):
    """One way to run the loop: the value of every factor; `factor` names the one that differs from the default."""

    name: str
    factor: str = ""
    source: str = "T3"
    admission: str = "oracle"
    writer: str = "W0"
    retriever: str = "dense"
    k: int = 5
    correspondence: str = "aligned"
    bank: str = "full"
    """full, a fraction such as 50%, matched:ARM:DRAW (cut to its card counts), retire:ARM (without harmful cards)."""
    solver: str = "single-shot"
    """The way held-out and banked questions are answered; a bank is always collected single-shot."""
    passes: int = 1
    definitions: bool = False
    """True where held-out and banked questions are asked with the definitions of their terms; no collection is."""
    base: str = ""
    """The arm this one differs from in its factor; empty for the default arm."""

    @property
    def remembers(self) -> bool:
        """Tell whether answers see cards at all: the one place that says what "no memory" means."""
        return self.retriever != "none" and self.k > 0


class Outcome(Struct, frozen=True, kw_only=True, gc=False):
    """One question answered under one arm, seed and setting: a row of results.csv and results.parquet."""

    arm: str
    setting: str
    seed: int
    question: str
    database: str
    difficulty: str
    right: bool
    first_right: bool
    rules: dict[str, bool]
    kind: str
    sql: str | None
    first_sql: str | None = None
    cards: tuple[CardId, ...] = ()
    scores: tuple[float, ...] = ()
    calls: int = 1
    rounds: int = 0
    probes: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    run: int = 0
    """The number of this repetition of the same prompts; only rerun and again go beyond 0."""
    accepted: bool = False
    """True if a repair ended with a candidate that its gate accepted."""
    round_calls: tuple[int, ...] = ()
    """The calls of each repair round; empty in ledgers that did not keep them."""
    wording: int = 0
    """The paraphrase that was asked, from 1 on; 0 is the question itself."""
    without: CardId = CardId("")
    """In the cause settings, the card of its window that this answer did without; `first_sql` had them all."""
    runtime: str = ""
    """The runtime of its calls' weights; several are joined by a plus sign, an endpoint that does not say is empty."""
    traits: tuple[float, ...] = ()
    """The traits that a served answer's probability of being right rests on (`measurement.confidence.TRAITS`)."""
    other_sql: str | None = None
    """The second reading of a served answer, where its views fell apart in two."""
    other_right: bool = False
    read_tokens: int = 0
    """The prompt tokens of a served answer that a prefix cache must still read; 0 in ledgers that did not keep them."""


class BankedCard(Struct, frozen=True, kw_only=True, gc=False):
    """A card in an arm's bank; `right` is the audit's bit, which no stage ever saw."""

    arm: str
    seed: int
    id: CardId
    database: str
    question_id: str
    question: str
    sql: str
    text: str
    tokens: int
    source: str
    signal: str
    right: bool
    modes: tuple[str, ...] = ()


TRANSFER = "transfer"


class Side(NamedTuple):
    """One side of a contrast: an arm in a setting, spelled `ARM`, or `ARM/SETTING` where it is not transfer."""

    arm: str
    setting: str = TRANSFER

    @classmethod
    def of(cls, label: str) -> "Side":
        """Read a label."""
        arm, _, setting = label.partition("/")
        return cls(arm, setting or TRANSFER)

    def __str__(self) -> str:
        """Write the label."""
        return self.arm if self.setting == TRANSFER else f"{self.arm}/{self.setting}"


class Contrast(Struct, frozen=True, kw_only=True):
    """A paired comparison of two arms on the same questions: b - a."""

    name: str
    a: str
    b: str
    confirmatory: bool = False

    @property
    def sides(self) -> tuple[Side, Side]:
        """Both sides, a first."""
        return Side.of(self.a), Side.of(self.b)

    @property
    def arms(self) -> tuple[str, str]:
        """The names of both arms, a's first."""
        first, second = self.sides
        return first.arm, second.arm


class Preregistration(Struct, frozen=True, kw_only=True):
    """The frozen design that a study was run from, and how the study differs from it."""

    at: str
    digest: str
    changed: tuple[str, ...] = ()
    """The frozen parts that are no longer the same: arms by name, questions, prompts, conditions."""
    added_arms: tuple[str, ...] = ()
    added_contrasts: tuple[str, ...] = ()


class Manifest(Struct, frozen=True, kw_only=True):
    """The record of a run: its study, version and benchmark."""

    study: str
    digest: str
    version: str
    benchmark: str
    model: str
    model_digest: str
    embedder: str
    seeds: tuple[int, ...]
    """The numbers of its splits: the seeds of 70/30 splits, or its folds from 1 on."""
    rule: str
    default_arm: str
    arms: tuple[Arm, ...]
    """Every arm of the study, recorded or not; `left_out` tells which are not."""
    contrasts: tuple[Contrast, ...]
    """Every contrast of the study, whether its arms were run or not: a family is what was designated."""
    budget: int = 0
    """K, the most rounds a repair may take; 0 in ledgers that did not keep it, as with the fields that follow."""
    max_tokens: int = 0
    """The longest reply that was asked for."""
    card_order: str = ""
    check: str = ""
    """The rule of the oracle that triggers repair and admits cards."""
    recordings: tuple[str, ...] = ()
    """The file names of the recordings that were read."""
    equivalence_margin: float = 0.0
    """The points by which two arms may differ and still be called equivalent, fixed by the study; 0 if drift does."""
    bare_per_seed: bool = False
    """True if answers without memory were asked anew for every seed, apart from those that repair starts from."""
    margin_from_drift: bool = False
    """True if the study takes the largest difference between identical runs for its margin."""
    started: str = ""
    finished: str = ""
    left_out: tuple[str, ...] = ()
    """The "arm/setting" pairs of the study that are not complete yet, and so have no outcomes here."""
    folds: int = 0
    """Into how many folds the questions were dealt; 0 for the paper's splits, one for each seed."""
    fold_seed: int = 0
    """The seed that dealt them."""
    missing_databases: tuple[str, ...] = ()
    """Databases of the benchmark that were not there, and whose questions were skipped."""
    preregistration: Preregistration | None = None
    """None where the design was not frozen before it was run."""

    @property
    def split(self) -> str:
        """The word for one of its splits."""
        return "fold" if self.folds else "seed"


class Ledger(Struct, frozen=True, kw_only=True):
    """All facts of one study."""

    manifest: Manifest
    outcomes: tuple[Outcome, ...]
    cards: tuple[BankedCard, ...]
    questions: dict[str, str] = {}
    """The text of each question id: for the gallery and the paraphrase audit, which are left out without it."""
    known: tuple[str, ...] = ()
    """The ids of questions that an earlier study had asked, so that their answers were known to the designers."""
    turns: dict[str, tuple[str, int]] = {}
    """Of each question in a dialogue, the id of the question that begins it, and its place from 1 on."""
    lucky: tuple[tuple[int, str], ...] | None = None
    """The seed and question of every change that the default arm makes in which the right answer fits the shipped rows
    alone, and is wrong on another generated instance; None where databases cannot be generated anew."""

    def of(self, arm: str, setting: str) -> tuple[Outcome, ...]:
        """The outcomes of one arm in one setting."""
        return tuple(row for row in self.outcomes if row.arm == arm and row.setting == setting)


LEDGER_FILE = "ledger.json"


def write_ledger(ledger: Ledger, folder: Path) -> Path:
    """Write the ledger into a run folder, whole or not at all."""
    return write_whole(folder / LEDGER_FILE, msgspec.json.encode(ledger))


def read_ledger(folder: Path) -> Ledger:
    """Read the ledger of a run folder."""
    target = folder / LEDGER_FILE
    try:
        return msgspec.json.decode(target.read_bytes(), type=Ledger)
    except FileNotFoundError:
        raise DataError(f"{folder}: holds no {LEDGER_FILE}; run: sqlcrystal study run FILE --out {folder}") from None
    except msgspec.MsgspecError as error:
        raise DataError(f"{target}: {error}") from None
