"""Tortures of processes: a model that misbehaves on a schedule, kills at random moments, crashes under load.

Each takes a folder of its own and whether it shall be quick, and tells how often it tried and everything that was lost.
"""

import csv
import io
import itertools
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import killed_study
from cardbox import HashingEmbedder, card, episode
from killing import said_until_killed
from model_endpoints import Answer, Handler, break_off, completion, hang, no_choices, refuse, reset, serving, truncate
from servers import crashing_postgres, new_postgres_database, running_postgres
from serving.test_learn import told
from shop import build
from sqlcrystal import Crystal
from sqlcrystal.bank import CardStore, Entry, Scope, export_jsonl, import_jsonl
from sqlcrystal.config import DatabaseEntry, TeamFile, parse_study
from sqlcrystal.errors import ModelError
from sqlcrystal.models.openai import OpenAIModel, OpenAISettings, RetryPolicy
from sqlcrystal.models.recording import Recording
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.serving.learning import Tried
from sqlcrystal.study.opening import run_study
from sqlcrystal.types import Message, Sampling
from study_player import Player, draw

HERE = Path(__file__).resolve().parent
OLD_BANKS = HERE / "bank" / "old"


class Toll(NamedTuple):
    """So many tries of one torture, what each that was lost had lost, and what this machine does not allow to try."""

    tries: int
    lost: list[str]
    untried: Sequence[str] = ()


def script(name: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a script of the tests in a process of its own."""
    command = [sys.executable, str(HERE / name), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)


# ── a model that misbehaves ──────────────────────────────────────────────────────────────────────────────────────────


def drip(handler: Handler, body: dict[str, Any], attempt: int) -> None:
    """Send a reply byte by byte, for longer than anybody waits."""
    handler.send_response(200)
    handler.send_header("content-length", "1000")
    handler.end_headers()
    for _ in range(40):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.1)
    handler.close_connection = True


def saying(content: bytes) -> Answer:
    """Send a whole reply that is no completion."""
    return lambda handler, body, attempt: handler.reply(200, content)


FAULTS: dict[str, Answer] = {
    "429": refuse(429, {"retry-after": "0"}),
    "500": refuse(500),
    "reset": reset,
    "time-out": hang(2.5),
    "drip": drip,
    "broken off": break_off,
    "truncated JSON": truncate,
    "no choices": no_choices,
    "HTML": saying(b"<html>busy</html>"),
    "another type": saying(b'{"choices": "none"}'),
}
RARE = {"time-out", "drip"}
ODD_REPLIES = ("I cannot help with that.", "", "```sql\nSELECT 1\n```\n```sql\nSELECT 2\n```", "SELECT", "```sql\n```")
SHARE = 35
ATTEMPTS = 4
RUNS = 12


def playing(faulty: bool) -> Answer:
    """Answer as the player does, now and then oddly; with faults by a schedule that is drawn for each attempt."""
    player = Player()

    def answer(handler: Handler, body: dict[str, Any], attempt: int) -> None:
        messages = [Message(message["role"], message["content"]) for message in body["messages"]]
        if faulty and draw(messages, body["seed"], attempt, "fault") < SHARE:
            names = [name for name in FAULTS for _ in range(1 if name in RARE else 6)]
            FAULTS[names[draw(messages, body["seed"], attempt, "kind") % len(names)]](handler, body, attempt)
            return
        odd = draw(messages, body["seed"], "odd")
        sampling = Sampling(temperature=body["temperature"], index=body["seed"])
        text = ODD_REPLIES[odd] if odd < len(ODD_REPLIES) else player.reply(messages, sampling)
        handler.reply(200, completion(text or None))

    return answer


def played(folder: Path, document: dict[str, Any], *, faulty: bool) -> int:
    """Run a study against such an endpoint until it is whole; return how many attempts the endpoint saw."""
    policy = RetryPolicy(attempts=ATTEMPTS, timeout=1.5, deadline=20.0, first_wait=0.01, longest_wait=0.05)
    with serving(playing(faulty)) as server:
        settings = OpenAISettings(name="player", base_url=server.base_url, identity="torture", retry=policy)
        for _ in range(RUNS):
            model = OpenAIModel(settings)
            try:
                if not run_study(parse_study(document), folder, model=model, jobs=8).left_out:
                    break
            except ModelError:
                continue  # the run says so and ends; the next one goes on
            finally:
                model.close()
        return sum(map(len, server.attempts.values()))


def misbehaving_model(folder: Path, quick: bool) -> Toll:
    """The tables, and what was recorded, are those of a healthy endpoint."""
    document = dict(killed_study.STUDY)
    if quick:
        document |= {"arm": [{"name": "none", "retriever": "none"}], "contrast": []}
    played(folder / "healthy", document, faulty=False)
    tries = played(folder / "faulty", document, faulty=True)
    lost = [] if same_tables(folder / "healthy", folder / "faulty") else ["the tables differ"]
    recorded = []
    for name in ("healthy", "faulty"):
        with Recording(folder / name / "recording.sqlite", read_only=True) as recording:
            recorded.append({entry.key: entry.completion.text for entry in recording.entries()})
    lost += [f"recorded otherwise: {key}" for key in recorded[0] if recorded[1].get(key) != recorded[0][key]]
    lost += [f"recorded though it failed: {key}" for key in recorded[1].keys() - recorded[0].keys()]
    return Toll(tries, lost)


def same_tables(one: Path, other: Path) -> bool:
    """Compare the tables of two runs but for the clock; a run that came to none has lost them."""
    tables = []
    for run in (one, other):
        text = (run / "results.csv").read_text(encoding="utf-8") if (run / "results.csv").exists() else ""
        tables.append([{**row, "seconds": ""} for row in csv.DictReader(io.StringIO(text))])
    return tables[0] == tables[1] and bool(tables[0])


# ── kills at random moments ──────────────────────────────────────────────────────────────────────────────────────────


def killed_studies(folder: Path, quick: bool) -> Toll:
    """A study that is killed again and again ends with the tables of one that was not."""
    kills = 5 if quick else 60
    for name, count in (("whole", 0), ("killed", kills)):
        (folder / name).mkdir()
        done = script("killed_study.py", folder / name, count, 7)
        if done.returncode or "Traceback" in done.stderr:
            return Toll(kills, [done.stderr[-500:]])
    return Toll(kills, [] if same_tables(folder / "whole", folder / "killed") else ["the tables differ"])


def killed_confirmations(folder: Path, quick: bool, *, stores: tuple[str, str] | None = None) -> Toll:
    """Every verdict that was acknowledged is there, once, with its card: in the store alone and in the service."""
    kills = 20 if quick else 300
    verdicts, served = stores or (str(folder), str(folder / "team.db"))
    lost = []
    for name, where, count in (
        ("killed_verdicts.py", [verdicts], kills),
        ("busy_service.py", ["kills", served, folder], max(2, kills // 10)),
    ):
        done = script(name, *where, count, 7)
        lost += [done.stderr[-500:]] if done.returncode else []
    return Toll(kills + max(2, kills // 10), lost)


def killed_confirmations_in_postgres(folder: Path, quick: bool) -> Toll:
    """The same with the store in PostgreSQL."""
    with running_postgres() as server:
        stores = new_postgres_database(server, "verdicts"), new_postgres_database(server, "served")
        return killed_confirmations(folder, quick, stores=stores)


def killed_imports(folder: Path, quick: bool) -> Toll:
    """A card file is in the bank as a whole or not at all, and once after it was imported again."""
    cards = [card(number) for number in range(40)]
    whole = folder / "cards.jsonl"
    with CardStore(folder / "source.db") as store, whole.open("wb") as out:
        store.add_all([Entry(card=each, episode=episode(each)) for each in cards])
        export_jsonl(store, out)
    tries, lost, rng = 10 if quick else 150, [], random.Random(7)

    def work(place: Path, pipe: int) -> None:
        with CardStore(place) as store, whole.open("rb") as source:
            import_jsonl(store, source)
        os.write(pipe, b"imported\n")
        time.sleep(60)

    for number in range(tries):
        place = folder / f"imported-{number}.db"
        said = said_until_killed(partial(work, place), lines=0, delay=rng.uniform(0, 0.12))
        with CardStore(place) as store:
            count = len(store.cards("shop"))
            if count not in ((len(cards),) if said else (0, len(cards))):
                lost.append(f"{count} of {len(cards)} cards")
            with whole.open("rb") as source:
                import_jsonl(store, source)
            if len(store.cards("shop")) != len(cards):
                lost.append("not once after another import")
    return Toll(tries, lost)


def killed_migrations(folder: Path, quick: bool) -> Toll:
    """A bank of an earlier version has every card, episode and change, however often its migration was cut short."""
    tries, lost, rng = 10 if quick else 150, [], random.Random(7)
    wanted = (OLD_BANKS / "cards.jsonl").read_bytes()

    def work(place: Path, pipe: int) -> None:
        CardStore(place).close()
        os.write(pipe, b"migrated\n")
        time.sleep(60)

    for number in range(tries):
        place = folder / f"bank-{number}.sqlite"
        shutil.copy(OLD_BANKS / ("0001-cards.sqlite", "0002-revisions.sqlite")[number % 2], place)
        for _ in range(2):
            said_until_killed(partial(work, place), lines=0, delay=rng.uniform(0, 0.06))
        out = io.BytesIO()
        with CardStore(place) as store:
            export_jsonl(store, out)
        lost += [f"bank {number} has other cards"] if out.getvalue() != wanted else []
    return Toll(2 * tries, lost)


LOGGED = [
    f"SELECT {one}, {other} FROM item ORDER BY {order}"
    for one, other in itertools.permutations(("id", "name", "kind", "price"), 2)
    for order in ("id", "name", "price")
] + ["SELECT kind, COUNT(*) FROM item GROUP BY kind"]
"""Queries that differ in more than literals; the question of the last leads elsewhere."""
LIVES = 6
"""The times that learning from one log is killed before it may end."""


def learning(folder: Path, number: int) -> Crystal:
    """Open the team of one log; its model notes each query before it words it, and is slow enough to be killed."""
    notes = folder / f"worded-{number}.txt"

    def noting(messages: Sequence[Message], sampling: Sampling) -> str:
        if messages[0].content.startswith("You read"):
            with notes.open("a") as stream:
                stream.write("a query\n")
        time.sleep(0.005)
        return told(messages, sampling)

    entry = DatabaseEntry(url=str(folder / "shop.sqlite"), learn=("propose", "round-trip")[number % 2])
    team = TeamFile(databases={"shop": entry}, store=str(folder / f"team-{number}.db"), budget=1)
    return Crystal(team, model=ScriptedModel(noting), embedder=HashingEmbedder())


def killed_learns(folder: Path, quick: bool) -> Toll:
    """Learning that is killed goes on where it stood: no query is lost, none is proposed or banked twice."""
    logs, lost, rng = 2 if quick else 25, [], random.Random(7)
    log = folder / "log.sql"
    log.write_text(";\n".join(LOGGED), encoding="utf-8")
    build(folder / "shop.sqlite")

    def work(number: int, pipe: int) -> None:
        def acknowledge(step: Tried) -> None:
            os.write(pipe, f"{step.outcome}\n".encode())

        with learning(folder, number) as crystal:
            crystal.learn(log, watch=acknowledge)
        time.sleep(60)

    for number in range(logs):
        known = 0
        for _ in range(LIVES):
            lines, delay = min(rng.randrange(6), len(LOGGED) - known), rng.uniform(0, 0.06)
            said = said_until_killed(partial(work, number), lines=lines, delay=delay)
            with learning(folder, number) as crystal:
                lost += [f"log {number}: {each}" for each in _unlearned(crystal, known + len(said))]
                known = len(crystal.store.learned.known("shop"))
        with learning(folder, number) as crystal:
            report = crystal.learn(log)
            lost += [f"log {number}: {each}" for each in _unlearned(crystal, len(LOGGED))]
            if report.known != known:
                lost.append(f"log {number}: did not go on after {known}: {report}")
        worded = (folder / f"worded-{number}.txt").read_text().count("\n")
        lost += [f"log {number}: {worded} queries were worded"] * (not len(LOGGED) <= worded <= len(LOGGED) + LIVES)
    return Toll(logs * LIVES, lost)


def _unlearned(crystal: Crystal, acknowledged: int) -> list[str]:
    """Tell what is wrong with a store after so many queries were acknowledged; one more may have been kept."""
    known = crystal.store.learned.known("shop").values()
    leading = [shape for shape in known if shape.answer]
    shown = [entry.sql or "" for entry in crystal.queue(limit=1000)] + [card.sql for card in crystal.cards()]
    kept = [crystal.answer_story(shape.answer).record.sql or "" for shape in leading]
    wrong = [f"{len(known)} known of {acknowledged}"] * (len(known) not in (acknowledged, acknowledged + 1))
    wrong += ["a query twice"] * (len({*kept}) != len(kept))
    wrong += ["a proposal or card without its query, or a query without"] * (sorted(kept) != sorted(shown))
    if len(known) == len(LOGGED) and sorted(kept) != sorted(LOGGED[:-1]):
        wrong.append("the whole log is not what was learned")
    return wrong


# ── a service and its store, crashing under load ─────────────────────────────────────────────────────────────────────


class Vitals(NamedTuple):
    """The resources that a process holds."""

    megabytes: float
    descriptors: int
    threads: int

    @classmethod
    def of(cls, process: int) -> "Vitals":
        """Read them from the system's table."""
        place = Path(f"/proc/{process}")
        status = (place / "status").read_text()
        return cls(
            int(status.partition("VmRSS:")[2].split()[0]) / 1024,
            len(os.listdir(place / "fd")),
            int(status.partition("Threads:")[2].split()[0]),
        )


def soak(folder: Path, quick: bool) -> Toll:
    """Load on two processes of the service while one of them or the store's server is killed, then calm for a while."""
    sys.path.append(str(HERE.parent / "benchmarks"))
    service_load: Any = import_module("service_load")
    storm, calm, clients = (24.0, 4.0, 8) if quick else (180.0, 120.0, 24)
    with crashing_postgres() as server:
        store = new_postgres_database(server.url, "team")
        with service_load.opened(folder, store, 0.0) as crystal:
            token = crystal.store.tokens.issue("load", [("*", scope) for scope in Scope], by="load")[0]
            crystal.workspace.remember(crystal.workspace.open("shop"))
        processes = [service_load.Server(folder, store, 0.05, clients) for _ in range(2)]
        try:
            load = service_load.Load(processes, token)
            load.warm_up()
            victims = [processes[-1], server]
            crashes = _storm(load, clients, storm, [*((victim,) for victim in victims), victims])
            lost = _calm(load, clients, calm, processes[0].running.pid)
        finally:
            for process in processes:
                process.stop()
        with service_load.opened(folder, store, 0.0) as crystal:
            account = service_load.account(crystal, load)
    lost += [f"{account['lost']} confirmations"] * bool(account["lost"])
    lost += [f"{account['twice']} cards stand twice"] * bool(account["twice"])
    lost += ["nothing was confirmed"] * (not account["asked_and_confirmed"])
    print(f"{crashes} crashes, {account['asked_and_confirmed']} confirmed, {dict(load.errors)}", file=sys.stderr)
    return Toll(account["asked_and_confirmed"], lost)


HEADSTART = 2.0
"""Seconds by which the service starts before the database when both were killed."""


def _storm(load: Any, clients: int, seconds: float, victims: Sequence[Sequence[Any]]) -> int:
    """Ask and confirm from many threads while victims are killed, one or all at once, and started in their order."""
    crashes = 0
    ends = time.monotonic() + seconds
    threads = _clients(load, clients, ends)
    for together in itertools.cycle(victims):
        time.sleep(min(8.0, seconds / 3))
        if time.monotonic() > ends:
            break
        for victim in together:
            victim.kill()
        with ThreadPoolExecutor(len(together)) as pool:
            for started in [
                pool.submit(_start_after, HEADSTART * place, victim) for place, victim in enumerate(together)
            ]:
                started.result()
        crashes += len(together)
    for thread in threads:
        thread.join()
    return crashes


def _start_after(seconds: float, victim: Any) -> None:
    time.sleep(seconds)
    victim.start()


def _calm(load: Any, clients: int, seconds: float, process: int) -> list[str]:
    """Ask and confirm undisturbed; tell of each resource that goes on growing."""
    load.errors.clear()
    threads = _clients(load, clients, time.monotonic() + seconds)
    time.sleep(seconds / 2)
    middle = Vitals.of(process)
    for thread in threads:
        thread.join()
    last = Vitals.of(process)
    print(f"{middle} {last}", file=sys.stderr)
    lost = [f"memory grew from {middle.megabytes:.0f} to {last.megabytes:.0f} MB"]
    lost = lost if last.megabytes > 1.1 * middle.megabytes + 5 else []
    lost += [f"descriptors grew to {last.descriptors}"] * (last.descriptors > middle.descriptors + 10)
    lost += [f"threads grew to {last.threads}"] * (last.threads > middle.threads + 10)
    return lost + [f"in calm: {error}" for error in load.errors]


def _clients(load: Any, clients: int, ends: float) -> list[threading.Thread]:
    threads = [threading.Thread(target=load._client, args=(number, clients, ends)) for number in range(clients)]
    for thread in threads:
        thread.start()
    return threads


Torture = Callable[[Path, bool], Toll]
