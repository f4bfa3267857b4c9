"""Runs a small study in forked children that are killed at random moments, then once to the end.

Called as: killed_study.py FOLDER KILLS SEED. Forking from a warm process lets fifty kills land inside the work rather
than inside the start of Python. Every child notes the requests it sends in a file of its own.
"""

import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from sqlcrystal.config import parse_study
from sqlcrystal.models.recording import request_key
from sqlcrystal.study.opening import run_study
from sqlcrystal.types import Completion, Message, Sampling
from study_player import Player

STUDY = {
    "name": "killed",
    "benchmark": {"name": "quarry-1", "only": ["clinic", "telecom"]},
    "seeds": [42],
    "max_tokens": 384,
    "arm": [
        {"name": "none", "retriever": "none", "settings": ["transfer", "repair"]},
        {"name": "k=1", "k": 1},
        {"name": "bm25", "retriever": "bm25"},
    ],
    "contrast": [{"a": "none", "b": "W0", "confirmatory": True}],
}


class Noting(Player):
    """A player that notes a request before it answers it."""

    notes: Path

    def chat(self, messages: Sequence[Message], *, sampling: Sampling = Sampling()) -> Completion:
        """Note the key, wait, answer."""
        with self.notes.open("a") as stream:
            stream.write(request_key(self.digest, messages, sampling) + "\n")
        return super().chat(messages, sampling=sampling)


def run(model: Noting, folder: Path, notes: Path) -> None:
    """One run of the study."""
    model.notes = notes
    run_study(parse_study(STUDY), folder, model=model, jobs=2)


def main(folder: Path, kills: int, seed: int) -> None:
    """Kill so many children, wait for the last."""
    # Slow enough that the work outlasts the kills, and that a kill mostly finds a reply under way.
    model = Noting(delay=0.05)
    rng = random.Random(seed)
    for number in range(kills + 1):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                run(model, folder, folder / f"asked-{number:02d}.txt")
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        if number < kills:
            time.sleep(rng.uniform(0.02, 0.35))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status)
        print(number, "killed" if killed else os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
