"""Beginnings of prompts on disk: read once for all commands, whole or not at all, and without the question."""

from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from sqlcrystal.models.local import LocalModel, LocalSettings, kept_beginnings
from sqlcrystal.solving.prompt import build_prompt, shared_beginning
from sqlcrystal.types import Message, Question, Sampling
from tiny_gguf import write_tiny_model

SCHEMA = "\n".join(f"CREATE TABLE t{number} (id INTEGER, name TEXT);" for number in range(30))
BRIEF = Sampling(max_tokens=2)

Open = Callable[..., LocalModel]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("gguf", reason="the extra `batched` is not installed")
    pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    return write_tiny_model(tmp_path_factory.mktemp("weights") / "tiny.gguf", context=4096)


@pytest.fixture
def opened(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Open the model as a new command would; beginnings lie below this test's own cache."""
    monkeypatch.setenv("SQLCRYSTAL_CACHE", str(tmp_path / "cache"))
    models: list[LocalModel] = []

    def a_new_command(*, kept_mib: int = 512, slots: int = 1) -> LocalModel:
        settings = LocalSettings(path=str(tiny), context=4096, threads=1, kept_mib=kept_mib, slots=slots)
        model = LocalModel(settings)
        model.keep_beginnings(shared_beginning)
        models.append(model)
        return model

    yield a_new_command
    for model in models:
        model.close()


def prompt(question: str, schema: str = SCHEMA) -> Sequence[Message]:
    return build_prompt(schema=schema, dialect="sqlite", question=Question(id="q", database="d", text=question))


class Watched:
    """The model's server, with an eye on the usage that it reports."""

    def __init__(self, server: Any) -> None:
        self.listening_address = server.listening_address
        self.read: list[tuple[int, int]] = []
        self._server = server

    def handle_chat_completions(self, request: Any, receive: Callable[[Any], bool]) -> None:
        def watch(piece: Any) -> bool:
            if usage := piece.get("usage"):
                cached = usage["prompt_tokens_details"]["cached_tokens"]
                self.read.append((usage["prompt_tokens"] - cached, usage["prompt_tokens"]))
            return receive(piece)

        self._server.handle_chat_completions(request, watch)


def read_tokens(model: LocalModel, messages: Sequence[Message]) -> tuple[int, int]:
    """Ask, and tell how many tokens of the prompt were read, of how many."""
    watched = model._server = Watched(model.load())
    model.chat(messages, sampling=BRIEF)
    return watched.read[0]


def kept() -> list[Path]:
    return sorted(kept_beginnings().glob("*"))


def test_the_next_command_reads_only_the_question(opened: Open) -> None:
    read, whole = read_tokens(opened(), prompt("How many are in t3?"))
    assert read == whole
    read, whole = read_tokens(opened(), prompt("Which names of t4 begin with A?"))
    assert read < whole / 5


def test_the_reply_is_the_same_with_a_kept_beginning_as_without(opened: Open) -> None:
    asked = prompt("Which names of t4 begin with A?")
    opened().chat(prompt("How many are in t3?"), sampling=BRIEF)
    assert opened().chat(asked, sampling=BRIEF).text == opened(kept_mib=0).chat(asked, sampling=BRIEF).text


def test_no_question_is_kept(opened: Open) -> None:
    """The file holds the tokens in plain numbers: those of a word that only the question has are not among them."""
    opened().chat(prompt("How many zzzzzzzzzzzzzzzz are there?"), sampling=BRIEF)
    [one] = kept()
    opened().chat(prompt("How many are there?", schema=f"{SCHEMA}\n-- zzzzzzzzzzzzzzzz"), sampling=BRIEF)
    other = next(file for file in kept() if file != one)
    run = b"".join(token.to_bytes(4, "little") for token in [_token_of_z(one, other)] * 4)
    assert run in other.read_bytes()
    assert run not in one.read_bytes()


def _token_of_z(one: Path, other: Path) -> int:
    """Find the token that stands many times in a row in the second file only."""
    words = [
        memoryview(file.read_bytes()[: 4 * (file.stat().st_size // 4)]).cast("I").tolist() for file in (one, other)
    ]
    runs = [
        {a for a, b, c, d in zip(found, found[1:], found[2:], found[3:], strict=False) if a == b == c == d and a}
        for found in words
    ]
    [token] = [value for value in runs[1] - runs[0] if value < 2**16]
    return token


def test_a_file_that_is_cut_short_or_changed_is_dropped_and_read_anew(opened: Open) -> None:
    """Given to llama.cpp, the first of them would end the process."""
    opened().chat(prompt("How many are in t3?"), sampling=BRIEF)
    damages: list[Callable[[bytes], bytes]] = [
        lambda whole: whole[: len(whole) // 2],
        lambda _: b"",
        lambda whole: whole[:-1] + bytes([whole[-1] ^ 1]),
    ]
    for damage in damages:
        [file] = kept()
        file.write_bytes(damage(file.read_bytes()))
        read, tokens = read_tokens(opened(), prompt("How many are in t3?"))
        assert read == tokens
        read, tokens = read_tokens(opened(), prompt("How many are in t3?"))
        assert read < tokens / 5


def test_files_are_their_owners_alone_and_the_oldest_goes_first(opened: Open) -> None:
    model = opened(kept_mib=1)
    model.chat(prompt("How many?", schema=SCHEMA), sampling=BRIEF)
    [first] = kept()
    assert (first.stat().st_mode & 0o777, kept_beginnings().stat().st_mode & 0o777) == (0o600, 0o700)
    number = 0
    while first in kept():
        number += 1
        assert number < 50
        model.chat(prompt("How many?", schema=f"{SCHEMA}\n-- {number}"), sampling=BRIEF)
    assert sum(file.stat().st_size for file in kept()) <= 2**20


def test_an_unwritable_folder_costs_nothing_but_time(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "beginnings").write_text("a file where the folder would be")
    assert opened().chat(prompt("How many are in t3?"), sampling=BRIEF).prompt_tokens


@pytest.mark.parametrize("settings", [{"kept_mib": 0}, {"slots": 2}])
def test_nothing_is_kept_where_it_is_switched_off_or_slots_are_many(opened: Open, settings: dict[str, int]) -> None:
    opened(**settings).chat(prompt("How many are in t3?"), sampling=BRIEF)
    assert not kept()


@pytest.mark.parametrize("path", ["/v1/models", "/props", "/slots", "/slots/0?action=save", "/completion"])
def test_other_users_of_the_machine_can_ask_the_model_nothing(opened: Open, path: str) -> None:
    """A server in this process listens on this machine, and had neither key nor lock on the prompts it was asked."""
    model = opened()
    model.chat(prompt("Which salary has Ada Lovelace?"), sampling=BRIEF)
    place = urlsplit(model.load().listening_address)
    for method, body in (("GET", None), ("POST", '{"prompt": "x", "filename": "x", "n_predict": 1}')):
        connection = HTTPConnection(place.hostname or "", place.port, timeout=10)
        connection.request(method, path, body)
        reply = connection.getresponse()
        assert reply.status in {401, 404}, (method, reply.status)
        assert b"Lovelace" not in reply.read()
        connection.close()
