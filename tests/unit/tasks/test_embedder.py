from __future__ import annotations

from pathlib import Path

import numpy as np

import headwise
from headwise.tasks.embedder import Embedder


def test_load_gives_an_embedder_of_vectors_of_length_one(embedder_model: Path) -> None:
    embedder = headwise.load(embedder_model, engine="torch")
    assert isinstance(embedder, Embedder)
    assert isinstance(embedder, headwise.Embedder)
    vectors = embedder.embed(["dog cat", "red", "one two three " * 50])
    assert vectors.shape == (3, 32)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert np.allclose(embedder.embed(["red"])[0], vectors[1], atol=1e-5)
    assert embedder.embed([]).shape == (0, 32)
    assert np.allclose(embedder.embed("red"), vectors[1], atol=1e-5), "one text has one vector"
    assert repr(embedder).endswith("32 dimensions, engine='torch')")


def test_the_most_similar_texts_come_first_with_their_places(embedder_model: Path) -> None:
    embedder = headwise.load(embedder_model, engine="torch")
    found = embedder.similar("cat dog cat", ["red blue red", "dog cat dog cat", "one two"], top=2)
    assert (found[0].place, found[0].text) == (1, "dog cat dog cat")
    assert found[0].similarity > found[1].similarity
    assert len(found) == 2


def test_vectors_are_the_mean_of_the_states_of_a_text(embedder_model: Path) -> None:
    import torch

    embedder = headwise.load(embedder_model, engine="torch")
    network = embedder.engine.network
    ids = torch.tensor([[2, *embedder.assets.tokenizers.source.encode("dog red one"), 3]])
    with torch.inference_mode():
        mean = torch.nn.functional.normalize(network.encode(ids).mean(dim=1))[0].numpy()
    assert np.allclose(embedder.embed(["dog red one"])[0], mean, atol=1e-5)
