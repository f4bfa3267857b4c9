"""Is the pipe kept full? A study of several arms and seeds against an endpoint that answers after a fixed time.

    python benchmarks/study_throughput.py [--in-flight 64] [--seconds 1.0]

Bars: wall time within 10 % of calls x seconds / in flight, and at most 5 ms of our own CPU an answer. The endpoint is a
process of its own, so that its work does not count as ours; it knows gold, so that arms have cards to show.
"""

import argparse
import asyncio
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

WITHIN = 1.10
CPU_MS = 5.0
ARMS = [
    {"name": "none", "retriever": "none", "settings": ["transfer", "repair"]},
    *({"name": f"k={k}", "k": k} for k in (1, 3, 10)),
    {"name": "permuted", "correspondence": "permuted"},
    {"name": "bm25", "retriever": "bm25"},
    {"name": "T1", "source": "T1"},
    {"name": "ungated", "admission": "ungated"},
]


def endpoint(seconds: float, announced: Connection) -> None:
    """Serve chat completions on loopback until the process is ended."""
    from sqlcrystal.types import Message, Sampling
    from study_player import Player

    player = Player()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = next(int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:"))
                content = reply(json.loads(await reader.readexactly(length)))
                await asyncio.sleep(seconds)
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(content) + content)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()  # the study has hung up

    def reply(body: dict[str, Any]) -> bytes:
        messages = [Message(**message) for message in body["messages"]]
        text = player.reply(messages, Sampling(temperature=body["temperature"], index=body.get("seed") or 0))
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        return json.dumps({"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}).encode()

    async def serve() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        announced.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())


def own_cpu() -> float:
    """Seconds of CPU that this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Run the study, print the figures; 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=1.0)
    chosen = parser.parse_args()
    from sqlcrystal.config import parse_study
    from sqlcrystal.study.opening import open_study, run_study

    hears, tells = multiprocessing.Pipe(duplex=False)
    server = multiprocessing.Process(target=endpoint, args=(chosen.seconds, tells), daemon=True)
    server.start()
    model = {"kind": "openai", "base_url": f"http://127.0.0.1:{hears.recv()}/v1", "name": "player"}
    study = parse_study(
        {
            "name": "throughput",
            "benchmark": "quarry-1",
            "model": {**model, "concurrency": chosen.in_flight},
            "budget": 2,
            "arm": ARMS,
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        with open_study(study, Path(folder) / "warm.sqlite") as opened:  # building Quarry is not what is measured
            opened.performer.world.database("clinic")
        cpu, began = own_cpu(), time.monotonic()
        finished = run_study(study, Path(folder) / "run", jobs=chosen.in_flight)
        wall, cpu = time.monotonic() - began, own_cpu() - cpu
    server.terminate()
    ideal = finished.sent * chosen.seconds / chosen.in_flight
    per_answer = 1000 * cpu / len(finished.ledger.outcomes)
    answers = len(finished.ledger.outcomes)
    print(f"{finished.sent} calls, {answers} answers, {chosen.in_flight} in flight, {chosen.seconds:g} s each")
    print(f"wall {wall:.1f} s, calls x seconds / in flight {ideal:.1f} s: ratio {wall / ideal:.3f} (bar {WITHIN})")
    print(f"own CPU {cpu:.1f} s: {per_answer:.2f} ms an answer (bar {CPU_MS})")
    return 0 if wall <= WITHIN * ideal and per_answer <= CPU_MS and not finished.left_out else 1


if __name__ == "__main__":
    sys.exit(main())
