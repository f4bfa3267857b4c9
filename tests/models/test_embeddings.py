"""Embedders give unit vectors that depend on the text alone, and no text is embedded twice."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from model_endpoints import behave, serving
from sqlcrystal.errors import BadReply, ConfigError
from sqlcrystal.models.embeddings import CachedEmbedder, WordLlamaEmbedder, open_embedder
from sqlcrystal.protocols import Embedder

TEXTS = [
    "How many boats sank in 1912?",
    "Average salary by department",
    "List schools in Alameda county",
    "a",
    "ß 価格",
]


@pytest.fixture(params=["wordllama", "minilm", "openai", "cached"])
def embedder(request: pytest.FixtureRequest) -> Iterator[Embedder]:
    if request.param == "minilm":
        pytest.importorskip("onnxruntime")
        try:
            yield open_embedder("minilm")
        except ConfigError as error:
            pytest.skip(f"the MiniLM extra is absent: {error}")
    elif request.param == "openai":
        with serving(behave) as server:
            remote = open_embedder({"kind": "openai", "base_url": server.base_url, "name": "e", "batch": 2})
            yield remote
            remote.close()
    else:
        yield open_embedder("wordllama") if request.param == "wordllama" else CachedEmbedder(WordLlamaEmbedder())


def test_every_row_is_a_unit_vector_in_the_order_of_the_texts(embedder: Embedder) -> None:
    vectors = embedder.embed(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape[0] == len(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    for text, vector in zip(TEXTS, vectors, strict=True):
        np.testing.assert_allclose(embedder.embed([text])[0], vector, atol=1e-6)


def test_no_texts_give_no_rows(embedder: Embedder) -> None:
    assert embedder.embed([]).shape[0] == 0


@pytest.mark.parametrize("kind", ["wordllama", "minilm"])
def test_a_paraphrase_is_nearer_than_another_question(kind: str) -> None:
    try:
        vectors = open_embedder(kind).embed(
            [
                "What is the average pay in each department?",
                "Average salary by department",
                "How many boats sank in 1912?",
            ]
        )
    except ConfigError as error:
        pytest.skip(f"the extra is absent: {error}")
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.1


def test_a_blank_text_is_like_nothing_rather_than_not_a_number() -> None:
    vector = WordLlamaEmbedder().embed([""])[0]
    assert np.isfinite(vector).all()


class Counting:
    name, digest, closed = "counting", "c0", False

    def __init__(self) -> None:
        self.seen: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.seen.extend(texts)
        return np.array([[1.0, 0.0]] * len(texts), dtype=np.float32).reshape(len(texts), 2)

    def close(self) -> None:
        self.closed = True


def test_a_text_is_embedded_once_even_across_processes(tmp_path: Path) -> None:
    first, second = Counting(), Counting()
    cache = CachedEmbedder(first, tmp_path / "e.sqlite")
    cache.embed(["a", "b", "a"])
    cache.embed(["b", "c"])
    cache.close()
    again = CachedEmbedder(second, tmp_path / "e.sqlite")
    vectors = again.embed(["c", "d", "a"])
    again.close()
    assert first.seen == ["a", "b", "c"]
    assert second.seen == ["d"]
    assert vectors.shape == (3, 2)


def test_closing_the_cache_closes_the_embedder_behind_it(tmp_path: Path) -> None:
    inner = Counting()
    CachedEmbedder(inner, tmp_path / "e.sqlite").close()
    assert inner.closed


def test_two_models_never_share_a_cached_vector(tmp_path: Path) -> None:
    first, second = Counting(), Counting()
    second.digest = "c1"
    for inner in (first, second):
        cache = CachedEmbedder(inner, tmp_path / "e.sqlite")
        cache.embed(["a"])
        cache.close()
    assert second.seen == ["a"]


def test_an_answer_with_too_few_embeddings_is_a_bad_reply() -> None:
    with serving(lambda handler, body, attempt: handler.reply(200, b'{"data": []}')) as server:
        retry = {"attempts": 2, "first_wait": 0.01}
        remote = open_embedder({"kind": "openai", "base_url": server.base_url, "name": "e", "retry": retry})
        with pytest.raises(BadReply, match="asked for 1 embeddings"):
            remote.embed(["a"])
        remote.close()


def test_an_unknown_embedder_lists_the_choices() -> None:
    with pytest.raises(ConfigError, match="'glove'; choose from minilm, openai, wordllama"):
        open_embedder("glove")
