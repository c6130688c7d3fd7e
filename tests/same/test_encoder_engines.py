"""CTranslate2's encoder gives the labels and vectors of torch, and does without torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fixtures_encoders import train_recipe
from small_tables import labelled_texts, write_table_recipe
from small_texts import write_fill_recipe

import headwise
from headwise.decoding.ctranslate2_encoder import CTranslate2Encoder
from headwise.tasks.inputs.text import INPUTS

TEXTS = [text for text, _ in labelled_texts(120, 3)]


def test_float32_has_the_logits_of_torch_and_int8_its_labels(classifier_model: Path) -> None:
    slow = headwise.load(classifier_model, engine="torch")
    exact = headwise.load(classifier_model, engine="ctranslate2", precision="float32")
    quick = headwise.load(classifier_model)
    assert isinstance(quick.engine, CTranslate2Encoder)
    assert np.allclose(exact.logits(TEXTS), slow.logits(TEXTS), atol=1e-4)
    same = sum(a.label == b.label for a, b in zip(quick.classify(TEXTS), slow.classify(TEXTS), strict=True))
    assert same >= 0.97 * len(TEXTS)


@pytest.mark.parametrize("settings", [{"norm": "post", "pooling": "first"}, {"segments": 1, "activation": "relu"}])
def test_other_settings_and_pairs_agree_too(tmp_path: Path, settings: dict[str, object]) -> None:
    model = train_recipe(write_table_recipe(tmp_path, model=settings, training={"steps": 2}), tmp_path / "run")
    slow, exact = (headwise.load(model, engine=name, precision="float32").engine for name in ("torch", "ctranslate2"))
    pairs = [[2, 5, 6, 3, 7, 8, 9, 3], [2, 5, 3, 7, 3], [2, 9, 3]]
    assert np.allclose(exact.answers(pairs), slow.answers(pairs), atol=1e-4)


@pytest.mark.parametrize("fixture", ["embedder_model", "filler_model", "classifier_model"])
def test_vectors_are_those_of_torch(fixture: str, request: pytest.FixtureRequest) -> None:
    from headwise.workflows.embed import open_embedder

    model = request.getfixturevalue(fixture)
    slow, exact = (open_embedder(model, name, precision="float32") for name in ("torch", "ctranslate2"))
    assert np.allclose(slow.embed(TEXTS), exact.embed(TEXTS), atol=1e-4)
    assert (slow.embed(TEXTS) * open_embedder(model).embed(TEXTS)).sum(axis=1).min() > 0.98


def test_a_model_without_weights_for_labels_is_refused(embedder_model: Path) -> None:
    from headwise.bundle.assets import Assets
    from headwise.bundle.directory import open_bundle
    from headwise.errors import ModelError

    with pytest.raises(ModelError, match="no weights for labels"):
        INPUTS.fast_engine(open_bundle(embedder_model), Assets.load(embedder_model), "float32")


def test_gaps_are_filled_as_by_torch(filler_model: Path) -> None:
    texts = ["dog cat [MASK] bird fish cow", "red [MASK] green [MASK] black", "[MASK]"]
    slow = headwise.load(filler_model, engine="torch")
    exact = headwise.load(filler_model, engine="ctranslate2", precision="float32")
    quick = headwise.load(filler_model)
    assert isinstance(quick.engine, CTranslate2Encoder)
    for one, other, rough in zip(slow.fill(texts), exact.fill(texts), quick.fill(texts), strict=True):
        assert one.text == other.text == rough.text
        for expected, found in zip(one.gaps, other.gaps, strict=True):
            assert [c.text for c in expected] == [c.text for c in found]
            assert np.allclose([c.probability for c in expected], [c.probability for c in found], atol=1e-4)


@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu-tanh", "silu"])
def test_the_head_for_tokens_is_that_of_torch_with_every_activation(tmp_path: Path, activation: str) -> None:
    settings = {"activation": activation, "norm": "post"}
    model = train_recipe(write_fill_recipe(tmp_path, model=settings, training={"steps": 2}), tmp_path / "run")
    slow, exact = (headwise.load(model, engine=name, precision="float32").engine for name in ("torch", "ctranslate2"))
    items, places = [[2, 5, 6, 3], [2, 5, 7, 8, 9, 3]], [[1], [2, 4]]
    for one, other in zip(slow.token_logits(items, places), exact.token_logits(items, places), strict=True):
        assert np.allclose(one, other, atol=1e-4)
