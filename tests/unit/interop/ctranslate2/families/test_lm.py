from __future__ import annotations

from pathlib import Path

import ctranslate2.specs
import numpy as np
import pytest
from safetensors.numpy import load_file

from headwise.bundle.directory import open_bundle
from headwise.interop.ctranslate2.families.lm import build, lacks
from headwise.text.tokenizer import TokenizerPair


def test_the_decoder_has_the_models_weights_and_vocabulary(language_model: Path) -> None:
    bundle, tokenizers = open_bundle(language_model), TokenizerPair.load(language_model)
    weights = load_file(language_model / "model.safetensors")
    spec = build(ctranslate2.specs, bundle.architecture, weights, tokenizers)
    assert len(spec.decoder.layer) == bundle.architecture["layers"]
    assert spec.decoder.embeddings.weight is spec.decoder.projection.weight is weights["embedding.weight"]
    first = spec.decoder.layer[0].self_attention.linear[0].weight
    assert np.array_equal(first, weights["stack.layers.0.self_attention.query_key_value.weight"])
    spec.validate()


@pytest.mark.parametrize(("sizes", "missing"), [({}, None), ({"cutoffs": []}, None), ({"cutoffs": [9]}, "adaptive")])
def test_only_an_adaptive_softmax_is_missing(sizes: dict[str, object], missing: str | None) -> None:
    said = lacks(sizes)
    assert said is None if missing is None else missing in str(said)
