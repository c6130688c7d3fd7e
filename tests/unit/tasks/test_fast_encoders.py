from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from headwise.bundle.assets import Assets
from headwise.bundle.directory import open_bundle
from headwise.errors import UsageError
from headwise.tasks.fast_encoders import label_encoder, vector_encoder


def test_vectors_are_the_mean_unless_the_model_was_trained_for_them(classifier_model: Path) -> None:
    bundle, tokenizers = open_bundle(classifier_model), Assets.load(classifier_model).tokenizers
    assert vector_encoder(bundle, tokenizers, "float32").pooling == "mean"
    assert vector_encoder(bundle, tokenizers, "float32").head is None
    assert label_encoder(bundle, tokenizers, "float32").pooling == bundle.architecture["pooling"]


def test_without_ctranslate2_the_remedy_is_named(classifier_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="pip install ctranslate2"):
        label_encoder(open_bundle(classifier_model), Assets.load(classifier_model).tokenizers, "int8")
