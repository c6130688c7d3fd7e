from __future__ import annotations

from pathlib import Path

import ctranslate2.specs
import numpy as np
from safetensors.numpy import load_file

from headwise.bundle.directory import open_bundle
from headwise.interop.ctranslate2.families.transformer import build
from headwise.text.tokenizer import TokenizerPair


def test_both_stacks_have_the_models_weights_and_alignment_is_of_the_last_layer_but_one(word_model: Path) -> None:
    bundle, tokenizers = open_bundle(word_model), TokenizerPair.load(word_model)
    weights = load_file(word_model / "model.safetensors")
    spec = build(ctranslate2.specs, bundle.architecture, weights, tokenizers)
    sizes = bundle.architecture
    assert (len(spec.encoder.layer), len(spec.decoder.layer)) == (sizes["encoder_layers"], sizes["decoder_layers"])
    cross = weights["decoder.layers.1.cross_attention.query_key_value.weight"]
    query, key_value, _ = spec.decoder.layer[1].attention.linear
    assert np.array_equal(np.concatenate((query.weight, key_value.weight)), cross)
    assert int(spec.decoder.alignment_layer) == max(0, sizes["decoder_layers"] - 2)
    spec.validate()
