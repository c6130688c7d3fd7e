"""The specification of Whisper has tokens in the order of published models."""

from __future__ import annotations

from pathlib import Path

import ctranslate2.specs
import numpy as np
import pytest
from fixtures_whisper import publish_whisper
from safetensors.numpy import load_file

from headwise.bundle.assets import Assets, read_preprocessing
from headwise.errors import ModelError, UsageError
from headwise.interop.ctranslate2.families.whisper import build, lacks
from headwise.workflows.import_model import import_model

SIZES = {"mels": 80, "vocab": 100}


def test_rows_and_names_are_those_of_the_published_vocabulary(tmp_path: Path) -> None:
    theirs = publish_whisper(tmp_path / "hub")
    import_model(tmp_path / "hub", tmp_path / "ours")
    assets, weights = Assets.load(tmp_path / "ours"), load_file(tmp_path / "ours/model.safetensors")
    sizes = {"model_dim": 32, "num_heads": 4, "encoder_layers": 2, "decoder_layers": 2, "source_positions": 50,
             "mels": 20, "vocab": assets.tokenizers.target.size, "absent": 2, "activation": "gelu"}  # fmt: skip
    spec = build(ctranslate2.specs, sizes, weights, assets.tokenizers, read_preprocessing(tmp_path / "ours"))
    rows, published = spec.decoder.embeddings.weight, theirs.proj_out.weight.detach().numpy()
    end = theirs.config.eos_token_id
    np.testing.assert_array_equal(rows[spec._vocabulary.index("<|endoftext|>")], published[end])
    np.testing.assert_array_equal(rows[spec._vocabulary.index("<|startoftranscript|>")], published[end + 1])
    np.testing.assert_array_equal(rows[-51:], published[-51:])  # times
    place = spec._vocabulary.index("<|notimestamps|>")
    assert place == len(rows) - 52
    assert {spec._vocabulary[number] for number in spec.config.lang_ids} == {"<|en|>", "<|de|>", "<|zh|>"}
    assert place in spec.config.suppress_ids
    assert len(set(spec._vocabulary)) == len(spec._vocabulary) == len(published)


def test_what_ctranslate2_lacks_is_said() -> None:
    assert lacks({"activation": "gelu"}) is None
    assert "relu" in str(lacks({"activation": "relu"}))
    with pytest.raises(UsageError, match="no timestamps"):
        build(ctranslate2.specs, SIZES, {}, None, {"kind": "log-mel", "mels": 80})  # type: ignore[arg-type]


@pytest.mark.parametrize("tokens", [0, None, [1], {"no_timestamps": 10**9}, {"languages": 7}])
def test_special_tokens_that_cannot_be_are_one_line(tokens: object) -> None:
    with pytest.raises(ModelError, match=r"preprocessing\.json"):
        build(ctranslate2.specs, SIZES, {}, None, {"kind": "log-mel", "mels": 80, "tokens": tokens})  # type: ignore[arg-type]
