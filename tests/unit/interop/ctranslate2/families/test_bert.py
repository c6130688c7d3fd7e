from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from ctranslate2 import specs

from headwise.bundle.directory import open_bundle
from headwise.interop.ctranslate2.export import _read_weights, cannot_export, export
from headwise.interop.ctranslate2.families.bert import build
from headwise.text.tokenizer import TokenizerPair


def test_the_encoder_has_embeddings_segments_positions_and_their_norm(classifier_model: Path) -> None:
    bundle = open_bundle(classifier_model)
    weights = _read_weights(bundle)
    spec = build(specs, bundle.architecture, weights, TokenizerPair.load(bundle.path))
    spec.validate()
    assert cannot_export(bundle) is None
    assert np.array_equal(spec.encoder.embeddings[1].weight.numpy(), weights["segments.weight"])
    assert len(spec.encoder.position_encodings.encodings.numpy()) == bundle.settings.longest
    assert spec.config.layer_norm_epsilon == pytest.approx(1e-12)


def test_an_export_says_what_it_was_made_from(classifier_model: Path, tmp_path: Path) -> None:
    bundle = open_bundle(classifier_model)
    export(bundle, TokenizerPair.load(bundle.path), tmp_path / "out", "int8")
    manifest = json.loads((tmp_path / "out/export.json").read_text())
    assert manifest["architecture"]["classes"] == 3
