"""What a store acknowledged survives killed processes, and threads and processes may share it."""

import os
import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cardbox import card
from killed_verdicts import give
from sqlcrystal.bank import CardStore, Store, Verdict

HERE = Path(__file__).resolve().parent
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])}
KILLS = 200


def test_no_acknowledged_verdict_is_lost_or_doubled_when_the_writer_is_killed_at_200_random_moments(place: str) -> None:
    where = place if "://" in place else str(Path(place).parent)
    done = subprocess.run(
        [sys.executable, str(HERE.parent / "killed_verdicts.py"), where, str(KILLS), "20260101"],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = re.fullmatch(r"200 kills, (\d+) acknowledged, (\d+) lives without a verdict\n", done.stdout)
    assert report
    assert int(report[1]) > KILLS, "the writers were killed before they could give a verdict"


WRITER = """
import sys
from cardbox import card
from sqlcrystal.bank import CardStore
with CardStore(sys.argv[1]) as store:
    for number in range(60):
        store.add(card(f"{sys.argv[2]}-{number}"))
        store.add(card(f"shared-{number}"))
"""


def test_processes_that_share_a_new_store_lose_nothing_and_bank_nothing_twice(place: str) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, place, str(name)], env=ENVIRONMENT) for name in range(3)]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0, 0]
    with CardStore(place) as store:
        ids = [c.id for c in store.cards("shop")]
    names = [*(f"{writer}-{number}" for writer in range(3) for number in range(60))]
    names += [f"shared-{number}" for number in range(60)]
    assert sorted(ids) == sorted(card(name).id for name in names)


def test_threads_may_share_one_store_while_they_bank_and_read(place: str) -> None:
    with CardStore(place) as store:

        def work(thread: int) -> list[int]:
            seen = []
            for number in range(10):
                store.add(card(f"{thread}-{number}"))
                seen.append(len(store.cards("shop")))
            return seen

        with ThreadPoolExecutor(4) as pool:
            seen = list(pool.map(work, range(4)))
        assert all(counts == sorted(counts) for counts in seen)
        assert len(store.cards("shop")) == 40


def test_fifty_threads_that_answer_and_confirm_lose_nothing_and_decide_nothing_twice(place: str) -> None:
    with Store(place) as store:

        def work(thread: int) -> int:
            for number in range(4):
                give(store, thread * 10 + number)
                give(store, 1_000_000 + number)  # every thread confirms the same answers, too
            return len(store.bank.cards("shop"))

        with ThreadPoolExecutor(50) as pool:
            list(pool.map(work, range(50)))
        decided = Counter(decision.answer for decision in store.decisions.all())
        assert len(decided) == 50 * 4 + 4
        assert set(decided.values()) == {1}
        assert len(store.bank.cards("shop")) == len(decided)
        assert {store.answers.verdict(name) for name in decided} == {Verdict.CONFIRMED}
