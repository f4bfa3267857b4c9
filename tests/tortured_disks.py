"""Tortures of what a service stands on: disks that are full or read-only, damaged files, a clock that jumps."""

import ctypes
import io
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import killed_study
from busy_service import ask_and_confirm, look, opened
from cardbox import card, episode
from killed_study import Noting
from sqlcrystal.bank import CardStore, Entry, Scope, Store, export_jsonl
from sqlcrystal.config import parse_study
from sqlcrystal.errors import SqlcrystalError
from sqlcrystal.ledger.folder import LogLine, Logs
from sqlcrystal.models.recording import RecordedCall, Recording, export
from sqlcrystal.models.scripted import ScriptedModel
from sqlcrystal.study.opening import run_study
from sqlcrystal.types import Completion, Message, Sampling
from tortured_lives import Toll, same_tables


class NotHere(Exception):
    """A torture that this machine does not allow."""


# ── disks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Callable[[str], None]]:
    """A disk of so many bytes at a folder, which can be mounted again with other options."""
    folder.mkdir(parents=True, exist_ok=True)

    def mount(options: str) -> None:
        command = ["mount", "-t", "tmpfs", "-o", options, "none", str(folder)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            raise NotHere("only root may mount a small disk")

    mount(f"size={size}")
    try:
        yield lambda options: mount(f"remount,{options}")
    finally:
        subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)


def full_disk(folder: Path, quick: bool) -> Toll:
    """On a disk that fills up at another byte each time, what was acknowledged is there, and service goes on after."""
    tries, lost = 3 if quick else 40, []
    for number in range(tries):
        small = folder / f"small-{number}"
        with small_disk(small, f"{400 + 37 * number}k") as remount:
            store = str(small / "team.db")
            lost += _fills_up(store, folder, number, lambda: remount("size=50m"))
    if not quick:
        tries, lost = tries + 1, lost + _study_on_a_full_disk(folder)
    return Toll(tries, lost)


def _fills_up(store: str, folder: Path, number: int, make_room: Callable[[], None]) -> list[str]:
    acknowledged: list[tuple[str, int]] = []
    try:
        with opened(store, folder) as crystal:
            for turn in range(10_000 * number, 10_000 * number + 1000):
                answer = ask_and_confirm(crystal, turn)
                acknowledged.append((answer, turn))
        return [f"disk {number} was never full"]
    except SqlcrystalError:
        pass
    except Exception as error:
        return [f"disk {number}: untyped {error!r}"]
    make_room()
    try:
        with opened(store, folder) as crystal:
            look(crystal, acknowledged, complete=False)
            ask_and_confirm(crystal, 10_000 * number + 5_000)
    except (SqlcrystalError, AssertionError) as error:
        return [f"disk {number}, {len(acknowledged)} acknowledged: {error!r}"]
    return []


def _study_on_a_full_disk(folder: Path) -> list[str]:
    """Run a study until its disk is full, make room, and go on."""
    document = {**killed_study.STUDY, "arm": [{"name": "none", "retriever": "none"}], "contrast": []}
    model = Noting()
    model.notes = folder / "asked.txt"
    run_study(parse_study(document), folder / "whole", model=model, jobs=2)
    with small_disk(folder / "study", "300k") as remount:
        run = folder / "study" / "run"
        try:
            if not run_study(parse_study(document), run, model=model, jobs=2).left_out:
                return ["the disk of the study was never full"]
        except (SqlcrystalError, OSError) as error:
            print(f"a study on a full disk: {error!r}", file=sys.stderr)
        remount("size=50m")
        run_study(parse_study(document), run, model=model, jobs=2)
        return [] if same_tables(folder / "whole", run) else ["a study on a full disk has other tables"]


def read_only_disk(folder: Path, quick: bool) -> Toll:
    """On a disk that becomes read-only nothing is acknowledged that is not there; afterwards service goes on."""
    tries, lost = 2 if quick else 20, []
    for number in range(tries):
        small = folder / f"small-{number}"
        with small_disk(small, "50m") as remount:
            store = str(small / "team.db")
            with opened(store, folder) as crystal:
                acknowledged = [(ask_and_confirm(crystal, turn), turn) for turn in range(3)]
            remount("ro")
            try:
                with opened(store, folder) as crystal:
                    acknowledged.append((ask_and_confirm(crystal, 3), 3))
                lost.append("acknowledged on a disk that takes nothing")
            except SqlcrystalError:
                pass
            except Exception as error:
                lost.append(f"untyped {error!r}")
            remount("rw")
            with opened(store, folder) as crystal:
                look(crystal, acknowledged, complete=False)
                ask_and_confirm(crystal, 4)
    return Toll(tries, lost)


# ── damaged files ────────────────────────────────────────────────────────────────────────────────────────────────────


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Damage a file as disks and people do: cut it, blank or overwrite a piece, lose its beginning."""
    kind = rng.choice(("cut", "blank", "noise", "beginning", "swapped", "empty"))
    at, size = rng.randrange(len(content)), rng.choice((512, 4096, 16384))
    at -= at % 512
    if kind == "cut":
        return content[:at]
    if kind == "beginning":
        return rng.randbytes(100) + content[100:]
    if kind == "swapped":
        other = rng.randrange(len(content)) // 4096 * 4096
        return content[:at] + content[other : other + size] + content[at + size :]
    piece = bytes(size) if kind == "blank" else rng.randbytes(size)
    return b"" if kind == "empty" and rng.random() < 0.2 else content[:at] + piece + content[at + size :]


def _damage(whole: Path, tries: int, read: Callable[[Path], object]) -> tuple[int, list[str]]:
    """Read damaged copies: each gives an error with the file's name, or the very content."""
    rng, lost, changed = random.Random(7), [], 0
    content, wanted = whole.read_bytes(), read(whole)
    for number in range(tries):
        copy = whole.with_name(f"damaged-{number}-{whole.name}")
        given_back = damaged(content, rng)
        if given_back == content:
            continue
        copy.write_bytes(given_back)
        changed += 1
        try:
            given = read(copy)
        except SqlcrystalError as error:
            named = copy.name in str(error) or "damaged" in str(error)
            lost += [] if named else [f"{number}: not named: {error}"]
        except Exception as error:
            lost.append(f"{number}: untyped {error!r}")
        else:
            if given != wanted and given_back:  # an empty file is one that was not begun
                lost.append(f"{number}: read in silence")
        for left in whole.parent.glob(f"damaged-{number}-*"):
            left.unlink()
    return changed, lost


def damaged_stores(folder: Path, quick: bool) -> Toll:
    """A damaged store is named, never read in silence."""
    place = folder / "team.db"
    with opened(str(place), folder) as crystal:
        for number in range(30):
            ask_and_confirm(crystal, number)

    def read(path: Path) -> object:
        out = io.BytesIO()
        with Store(str(path)) as store:
            answers = store.answers.recent(limit=1000)
            export_jsonl(store.bank, out)
            return [answers, store.decisions.all(), out.getvalue()]

    return Toll(*_damage(place, 20 if quick else 300, read))


def damaged_recordings(folder: Path, quick: bool) -> Toll:
    """A damaged recording is named, whole or packed."""
    working, shipped = folder / "r.sqlite", folder / "r.jsonl.xz"
    model = ScriptedModel(["SELECT 1"])
    with Recording(working) as recording:
        for number in range(200):
            messages = (Message("user", f"question {number} " * 40),)
            recording.add([RecordedCall.of(model, messages, Sampling(), Completion(text=f"SELECT {number}"))])
        export(recording, shipped)

    def read(path: Path) -> object:
        with Recording(path, read_only=True) as recording:
            return list(recording.entries())

    tolls = [_damage(path, 15 if quick else 300, read) for path in (working, shipped)]
    return Toll(sum(tries for tries, _ in tolls), [each for _, lost in tolls for each in lost])


def damaged_card_files(folder: Path, quick: bool) -> Toll:
    """A damaged export is refused as a whole, or gives the very cards."""
    whole = folder / "cards.jsonl"
    with CardStore(folder / "bank.db") as store, whole.open("wb") as out:
        store.add_all([Entry(card=card(number), episode=episode(card(number))) for number in range(30)])
        export_jsonl(store, out)

    def read(path: Path) -> object:
        from sqlcrystal.bank import import_jsonl

        with CardStore(folder / f"into-{path.stem}.db") as store, path.open("rb") as source:
            try:
                import_jsonl(store, source, name=path.name)
            except SqlcrystalError:
                assert not store.cards("shop"), "imported in part"
                raise
            return len(store.cards("shop"))

    return Toll(*_damage(whole, 15 if quick else 150, read))


def damaged_logs(folder: Path, quick: bool) -> Toll:
    """Each line that a study writes again stands whole in a damaged log, and nothing is glued to what is damaged."""
    tries, lost, rng = 10 if quick else 200, [], random.Random(7)
    lines = [
        LogLine(question=f"q{number}", database="d", text="?" * 200, sql=None, right=False, prompts=(), calls=())
        for number in range(20)
    ]
    for number in range(tries):
        place = folder / str(number)
        logs = Logs(place)
        for line in lines:
            logs.append("arm", line)
        [path] = place.iterdir()
        content = path.read_bytes()
        path.write_bytes(damaged(content, rng))
        logs = Logs(place)
        for line in lines:
            logs.append("arm", line)
        kept = path.read_bytes().split(b"\n")
        if not set(content.split(b"\n")) <= set(kept):
            lost.append(f"log {number} lacks lines")
        shutil.rmtree(place)
    return Toll(tries, lost)


# ── clocks ───────────────────────────────────────────────────────────────────────────────────────────────────────────

SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
static long ahead;
void jump(long seconds) { ahead = seconds; }
int clock_gettime(clockid_t id, struct timespec *at) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int done = real(id, at);
  if (id == CLOCK_REALTIME) at->tv_sec += ahead;
  return done;
}
"""
DAY = 86_400


def jumping_clock(folder: Path, quick: bool) -> Toll:
    """While the clock jumps by up to ten years either way, nothing is lost and no token outlives its day."""
    compiler, shim = shutil.which("cc"), folder / "clock.so"
    if compiler is None:
        raise NotHere("no C compiler for a clock that jumps")
    (folder / "clock.c").write_text(SHIM)
    command = [compiler, "-shared", "-fPIC", "-o", str(shim), str(folder / "clock.c"), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    jumps = 5 if quick else 60
    code = f"import tortured_disks, pathlib; tortured_disks.live_through({jumps}, pathlib.Path({str(folder)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"LD_PRELOAD": str(shim)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return Toll(jumps, [done.stderr[-500:]] if done.returncode else [])


def live_through(jumps: int, folder: Path) -> None:
    """Ask, confirm and knock with tokens while the clock of this process jumps."""
    jump, rng = ctypes.CDLL("").jump, random.Random(7)
    jump.argtypes = [ctypes.c_long]
    with opened(str(folder / "team.db"), folder) as crystal:
        token = crystal.issue_token("ada", None, [Scope.ASK], days=1.0).token
        acknowledged = []
        for number in range(jumps):
            seconds = rng.choice((-3650, -1, 0, 1, 3650)) * DAY + rng.randrange(-3 * DAY, 3 * DAY)
            jump(seconds)
            acknowledged.append((ask_and_confirm(crystal, number), number))
            assert (crystal.recognise(token) is None) == (seconds >= DAY - 60), seconds
            crystal.queue()
        jump(0)
        crystal.value()
        look(crystal, acknowledged, complete=False)
