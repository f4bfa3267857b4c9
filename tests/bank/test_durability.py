"""What the bank acknowledged survives killed processes, and processes may share it."""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cardbox import card
from sqlcrystal.bank import CardStore

HERE = Path(__file__).resolve().parent
ENVIRONMENT = os.environ | {"PYTHONPATH": str(HERE.parent)}
KILLS = 200


def test_no_acknowledged_card_is_lost_when_the_writer_is_killed_at_200_random_moments(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(HERE / "killed_writer.py"), str(tmp_path), str(KILLS), "20260101"],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = re.fullmatch(r"200 kills, (\d+) acknowledged, (\d+) lives without a card\n", done.stdout)
    assert found
    assert int(found[1]) > KILLS, "the writers were killed before they could bank anything"


WRITER = """
import sys
from cardbox import card
from sqlcrystal.bank import CardStore
with CardStore(sys.argv[1]) as store:
    for number in range(60):
        store.add(card(f"{sys.argv[2]}-{number}"))
        store.add(card(f"shared-{number}"))
"""


def test_processes_that_share_a_new_bank_lose_nothing_and_bank_nothing_twice(tmp_path: Path) -> None:
    path = tmp_path / "bank.sqlite"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(name)], env=ENVIRONMENT) for name in range(3)
    ]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]
    with CardStore(path) as store:
        ids = [c.id for c in store.cards("shop")]
    names = [*(f"{writer}-{number}" for writer in range(3) for number in range(60))]
    names += [f"shared-{number}" for number in range(60)]
    assert sorted(ids) == sorted(card(name).id for name in names)


def test_threads_may_share_one_store_while_they_bank_and_read(tmp_path: Path) -> None:
    with CardStore(tmp_path / "bank.sqlite") as store:

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
