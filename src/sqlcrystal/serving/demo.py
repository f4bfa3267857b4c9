"""The demo: a month of use over Quarry's databases, and the replies a real model once gave, played back."""

import hashlib
import lzma
import random
import re
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from sqlcrystal import assembly, pipeline
from sqlcrystal.bank import AnswerRecord, Entry, Scope, Verdict
from sqlcrystal.bank.tables import answer_cards, answers, decisions, experiments, proposals
from sqlcrystal.benchmarks.cases import Benchmark, Split, split
from sqlcrystal.benchmarks.oracle import GoldOracle
from sqlcrystal.benchmarks.quarry import load
from sqlcrystal.config import DatabaseEntry, TeamFile
from sqlcrystal.config.study import FOLDERS
from sqlcrystal.databases import open_database
from sqlcrystal.errors import DataError, ModelRejected
from sqlcrystal.models.recording import RecordedCall, Recording
from sqlcrystal.protocols import Database
from sqlcrystal.serving.answers import ServedAnswer
from sqlcrystal.serving.crystal import Crystal
from sqlcrystal.serving.documents import Rejection
from sqlcrystal.solving.solver import SingleShot
from sqlcrystal.types import Completion, Episode, Message, Question, Sampling

MODEL = "qwen2.5-coder-1.5b"
RECORDING = Path("recordings/quarry.jsonl.xz")
REPORT = Path("reports/quarry")
SEED = 42
"""Whose split of the study fills the bank: with these cards the recording holds every reply."""
WITHOUT_CARDS, WITH_OTHER_CARDS, WITHOUT_PROFILE = (
    "recorded-without-cards",
    "recorded-with-other-cards",
    "recorded-without-profile",
)
"""How a completion ended that was recorded for the same question, and not for this very prompt."""
HOLD_OUT = 0.5
DAYS = 30
TEAM = ("ada", "ben", "chi")
ANSWER_KEY, BENCHMARK = "the benchmark's answer key", "benchmark"
"""The judge of the simulated month and its signal: no person, so nothing was banked by it."""
LEAST_ALIKE = 0.45
_CARDS = re.compile(r"\n\[Relevant experience.*?(?=\n\[Question\]\n)", re.DOTALL)
_PROFILE = re.compile(r"\n+-- What the columns hold:(?:\n-- [^\n]*)*")
_CARD = re.compile(r"^Q: .*?(?=\n\nQ: |\Z)", re.DOTALL | re.MULTILINE)
_ASKED = re.compile(r"\[Question\]\n(?P<text>.*?)(?:\nHint: [^\n]*)?\n[^\n]*```sql block\.?$", re.DOTALL)


class Story(NamedTuple):
    """The steps of the demo by the ids of the benchmark's questions; each over the database it names."""

    opening: str
    """Wrong without memory, right with it."""
    sibling: str
    """Another such question over the same database, for the visitor to ask."""
    rejected: str
    """Answered wrong over another database and waiting, for the visitor to reject: its repair is recorded."""


STORY = Story(opening="payroll-12", sibling="payroll-25", rejected="telecom-10")
STORY_DATABASE, OTHER_DATABASE = (each.partition("-")[0] for each in (STORY.opening, STORY.rejected))


# ── the model ────────────────────────────────────────────────────────────────────────────────────────────────────────


class NotRecorded(ModelRejected):
    """A prompt that the recording does not hold."""


class Prompt(NamedTuple):
    """A prompt by what counts: the rules, the schema with its probes, and the question, without cards and hints."""

    system: str
    schema: str
    question: str


class RecordedReplies:
    """A model that says what it once said to the same question: with the same cards, or with those nearest to them."""

    def __init__(self, entries: Iterator[RecordedCall]) -> None:
        """Index the greedy replies of one model."""
        self.name = f"{MODEL}, recorded"
        self.digest = hashlib.sha256(self.name.encode()).hexdigest()
        self.slots = 4
        self._replies: dict[Prompt, dict[frozenset[str], Completion]] = defaultdict(dict)
        for entry in entries:
            if entry.model != MODEL or entry.sampling.temperature or entry.sampling.index:
                continue
            if (prompt := _prompt(entry.messages)) is not None:
                self._replies[prompt].setdefault(_cards(entry.messages), entry.completion)

    def chat(self, messages: Sequence[Message], *, sampling: Sampling = Sampling()) -> Completion:  # noqa: ARG002
        """Reply as recorded, whatever the sampling; NotRecorded says how to get a live model."""
        prompt, cards = _prompt(messages), _cards(messages)
        known = self._replies.get(prompt) if prompt else None
        if known and cards in known:
            return known[cards]
        if known:
            near = max(known, key=lambda other: (len(other & cards), -len(other - cards), sorted(other)))
            return _said(known[near], WITH_OTHER_CARDS if near & cards else WITHOUT_CARDS)
        plain = prompt and self._replies.get(prompt._replace(schema=_PROFILE.sub("", prompt.schema)))
        if plain:
            return _said(plain.get(frozenset()) or next(iter(plain.values())), WITHOUT_PROFILE)
        raise NotRecorded(
            "Not in the recording: this demo plays back what a model once replied. The page /demo/questions lists what "
            "was recorded, and says how to connect a model that answers any question."
        )

    def close(self) -> None:
        """Release nothing."""


def _said(reply: Completion, how: str) -> Completion:
    """Let a recorded reply stand in for another."""
    return Completion(
        text=reply.text,
        finish_reason=how,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        seconds=reply.seconds,
    )


def _prompt(messages: Sequence[Message]) -> Prompt | None:
    if len(messages) != 2:
        return None
    user = _CARDS.sub("", messages[1].content)
    schema, mark, _ = user.partition("\n[Question]\n")
    asked = _ASKED.search(user)
    return Prompt(messages[0].content, schema, asked["text"].strip()) if mark and asked else None


def _cards(messages: Sequence[Message]) -> frozenset[str]:
    """Read the cards of a prompt, in no order: a study sorts them by question, serving by nearness."""
    block = _CARDS.search(messages[-1].content)
    return frozenset(card.strip() for card in _CARD.findall(block[0])) if block else frozenset()


# ── a month of use ───────────────────────────────────────────────────────────────────────────────────────────────────


class MonthAnswer(NamedTuple):
    """An answer as the product gave it, how it came about, and whether it is right by the benchmark's answer key."""

    record: AnswerRecord
    trace: Episode | None
    right: bool
    judged: bool = True


class Past(NamedTuple):
    """The store when the demo begins: the cards of one split, and a month of answers over them."""

    cards: Sequence[Entry]
    answers: Sequence[MonthAnswer]


class AnswerKey:
    """The benchmark with its databases open: says whether SQL is right, and never what would be."""

    def __init__(self, benchmark: Benchmark) -> None:
        """Open nothing yet."""
        self._benchmark = benchmark
        self._open: dict[str, Database] = {}
        self.oracle = GoldOracle(benchmark.cases, self.database)

    def database(self, name: str) -> Database:
        """Open a database once."""
        if name not in self._open:
            self._open[name] = open_database(self._benchmark.locations[name], name=name, inspect=False)
        return self._open[name]

    def right(self, question: Question, sql: str | None) -> bool:
        """Judge SQL; none is wrong."""
        return sql is not None and self.oracle.right(question, sql)

    def close(self) -> None:
        """Close what was opened."""
        for database in self._open.values():
            database.close()


def learned(key: AnswerKey, replies: RecordedReplies, questions: Iterable[Question]) -> list[Entry]:
    """Repair what the model got wrong, and keep what the answer key lets through: the study's own loop."""
    made = []
    for question in questions:
        database = key.database(question.database)
        attempt = SingleShot(replies, database).solve(question)
        regime = assembly.regime("oracle", bench=assembly.Bench(question, database, key.oracle.right))
        lesson = pipeline.learn(
            attempt,
            trigger=regime.trigger,
            source=assembly.source("T3-look", model=replies, database=database, budget=1),
            accept=regime.accept,
            verifier=regime.verifier,
            writer=assembly.writer("W0", database=database, model=replies),
        )
        if lesson.card is not None:
            made.append(Entry(card=lesson.card, episode=lesson.effort.episode))
    return made


def simulated_month(crystal: Crystal, key: AnswerKey, parts: Split, *, database: str) -> list[MonthAnswer]:
    """Have each question answered once with memory and once without, then let colleagues ask them for thirty days.

    Which day brings which question is drawn with a fixed seed; chance decides who sees cards, as in service. The last
    day's answers still wait for a verdict.
    """
    banked = {card.question.text for card in crystal.cards(database)}
    returning = [case.question for case in parts.learn if case.question.text in banked]
    new = [case.question for case in parts.held_out if case.question.database == database]
    asked = [*returning, *new]
    given = {
        (question.text, memory): _given(crystal, key, question, memory=memory)
        for question in asked
        for memory in (True, False)
    }
    chance, past = random.Random(f"{SEED} {database}"), []
    last = datetime.now(UTC).replace(hour=9, minute=0, second=0, microsecond=0) - timedelta(days=1)
    for day in range(DAYS, 0, -1):
        for place, question in enumerate(chance.sample(asked, k=len(asked) // 2)):
            at = last - timedelta(days=day, minutes=-17 * place)
            answer = given[question.text, chance.random() >= HOLD_OUT]
            past.append(_dated(answer, at, by=chance.choice(TEAM)))
    waiting = [
        *[each for each in new if each.id not in STORY][:5],
        *[each for each in new if each.id == STORY.rejected],
    ]
    for place, question in enumerate(waiting):
        memory = question.id != STORY.rejected and place % 2 == 0
        at = last + timedelta(minutes=23 * place)
        past.append(_dated(given[question.text, memory], at, by="ben", judged=False))
    return past


def _given(crystal: Crystal, key: AnswerKey, question: Question, *, memory: bool) -> MonthAnswer:
    answer = crystal.ask(question.text, question.database, by="ada", memory=memory)
    record = crystal.store.answers.get(answer.id)
    trace = crystal.store.answers.trace(answer.id)
    return MonthAnswer(replace(record, seconds=_seconds(trace)), trace, key.right(question, answer.sql))


def _seconds(trace: Episode | None) -> float:
    """Add up how long the model took when it was recorded; playing back takes no time."""
    calls = [*trace.attempt.calls, *(call for spent in trace.rounds for call in spent.calls)] if trace else []
    return round(sum(call.completion.seconds for call in calls), 3)


def _dated(answer: MonthAnswer, at: datetime, *, by: str, judged: bool = True) -> MonthAnswer:
    moment = at.isoformat(timespec="seconds")
    name = hashlib.sha256(f"{answer.record.database} {answer.record.question} {moment}".encode()).hexdigest()[:12]
    record = replace(answer.record, id=name, at=moment, asked_by=by, share=HOLD_OUT)
    return answer._replace(record=record, judged=judged)


# ── the service over it ──────────────────────────────────────────────────────────────────────────────────────────────


class DemoCrystal(Crystal):
    """A Crystal that knows which questions were recorded, and where its story began."""

    questions: dict[str, list[str]]
    past: Past
    texts: dict[str, str]
    reports: Path
    """A folder of study runs: the bundled one, with its report."""
    repairing: Crystal
    """Looks for repairs: these were recorded for prompts without a profile of the columns."""

    def reject(self, answer: ServedAnswer | str, *, by: str = "", note: str = "", repair: bool = True) -> Rejection:
        """Reject an answer, and look for a repair among those that were recorded."""
        name = answer if isinstance(answer, str) else answer.id
        return self.repairing.acting_for(self.caller).reject(name, by=by, note=note, repair=repair)

    def waiting_story(self) -> str:
        """Name the answer that the story has its visitor reject; nothing once it was judged."""
        text = self.texts[STORY.rejected]
        return next((each.id for each in self.queue(OTHER_DATABASE, told=False) if each.question == text), "")

    def recorded_questions(self, database: str) -> list[str]:
        """List what can be asked of a database."""
        return self.questions.get(database, [])

    def near_questions(self, text: str, database: str, *, most: int = 4) -> list[str]:
        """List the recorded questions that read most like a text; none where nothing does."""
        wanted = text.casefold()
        scored = [
            (SequenceMatcher(None, wanted, known.casefold()).ratio() + _shared_words(wanted, known.casefold()), known)
            for known in self.recorded_questions(database)
        ]
        best = sorted((pair for pair in scored if pair[0] >= LEAST_ALIKE), reverse=True)[:most]
        return [known for _, known in best]

    def opening(self) -> tuple[str, str] | None:
        """Name the answers without memory and with it that the demo opens on; None once they were forgotten."""
        found: dict[bool, str] = {}
        for record in self._asked(self.texts[STORY.opening]):
            if record.share and not record.replayed:
                found.setdefault(record.memory, record.id)
        return (found[False], found[True]) if len(found) == 2 else None

    def was_asked(self, text: str) -> bool:
        """Tell whether a visitor asked a question of the story, beside the simulated month."""
        return any(not record.share for record in self._asked(text))

    def _asked(self, text: str) -> list[AnswerRecord]:
        return self.store.answers.recent(database=STORY_DATABASE, question=text, limit=200)

    def reset(self) -> None:
        """Bring the store back to where the demo began; tokens stay, so that nobody is logged out."""
        with self.store.backend.writing() as connection:
            for table in (answer_cards, decisions, proposals, answers, experiments):
                connection.execute(table.delete())
            for card in self.cards():
                self.store.bank.delete(card.id, by="demo", reason="the demo was set back")
            _fill(self, self.past)


def _shared_words(one: str, other: str) -> float:
    first, second = (set(re.findall(r"\w{4,}", text)) for text in (one, other))
    return len(first & second) / (len(first) or 1)


def _fill(crystal: Crystal, past: Past) -> None:
    crystal.store.bank.add_all(past.cards)
    for answer in past.answers:
        crystal.store.answers.save(answer.record, answer.trace)
        if answer.judged:
            verdict = Verdict.CONFIRMED if answer.right else Verdict.REJECTED
            crystal.store.decisions.decide(answer.record, verdict, by=ANSWER_KEY, signal=BENCHMARK)


@contextmanager
def demo_crystal(store: str | None = None) -> Iterator[DemoCrystal]:
    """Open everything the demo needs; without a store of its own, what was done is gone when it ends."""
    print("sqlcrystal demo: playing back a month of use, some seconds", file=sys.stderr, flush=True)
    benchmark = load()
    recording = Recording(_beside(RECORDING))
    replies = RecordedReplies(recording.entries())
    recording.close()
    with tempfile.TemporaryDirectory(prefix="sqlcrystal-demo-") as folder:
        entries = {name: _entry(place) for name, place in benchmark.locations.items()}
        team = TeamFile(databases=entries, store=store or str(Path(folder) / "demo.db"), model=MODEL, budget=0)
        plain = {name: replace(entry, profile=False, choice="none") for name, entry in entries.items()}
        crystal = DemoCrystal(team, model=replies)
        crystal.repairing = Crystal(replace(team, databases=plain, budget=1), model=replies)
        crystal.reports = _unpacked_report(Path(folder) / "runs")
        crystal.texts = {case.question.id: case.question.text for case in benchmark.cases}
        crystal.questions = {
            name: [case.question.text for case in benchmark.cases if case.question.database == name]
            for name in benchmark.databases
        }
        try:
            crystal.past = _past(benchmark, replies, replace(team, store=str(Path(folder) / "rehearsal.db")))
            if not crystal.cards():
                with crystal.store.transaction():
                    _fill(crystal, crystal.past)
            yield crystal
        finally:
            crystal.repairing.close()
            crystal.close()


def _past(benchmark: Benchmark, replies: RecordedReplies, team: TeamFile) -> Past:
    """Rehearse the month on a store of its own."""
    parts, key = split(benchmark.cases, seed=SEED), AnswerKey(benchmark)
    try:
        cards = learned(key, replies, [case.question for case in parts.learn])
        with Crystal(team, model=replies) as rehearsal:
            rehearsal.store.bank.add_all(cards)
            months = [
                simulated_month(rehearsal, key, parts, database=name) for name in (STORY_DATABASE, OTHER_DATABASE)
            ]
        return Past(cards, [answer for month in months for answer in month])
    finally:
        key.close()


def _entry(place: str) -> DatabaseEntry:
    return DatabaseEntry(url=place, replay=True, hold_out=HOLD_OUT, profile=True, choice="signs")


def demo_token(crystal: Crystal) -> str:
    """Issue a token for the person who started the demo."""
    return crystal.issue_token("you", scopes=Scope).token


def _unpacked_report(runs: Path) -> Path:
    """Lay the bundled report out as a run's folder does."""
    kept, run = _beside(REPORT), runs / REPORT.name
    (run / "report").mkdir(parents=True)
    shutil.copy(kept / "summary.json", run)
    (run / "report" / "figures").mkdir()
    shutil.copy(kept / "headline.svg", run / "report" / "figures")
    (run / "report" / "index.html").write_bytes(lzma.decompress((kept / "index.html.xz").read_bytes()))
    return runs


def _beside(name: Path) -> Path:
    for folder in FOLDERS:
        if (folder / name).exists():
            return folder / name
    raise DataError(f"demo: {name} is not beside this package; install it from a wheel or a checkout")
