"""The key table of Whisper."""

from __future__ import annotations

import pytest

from headwise.config.families.whisper import WhisperSettings
from headwise.errors import UsageError
from headwise.interop.huggingface.families.whisper import LAYOUTS, constants, keys, write_config
from headwise.models.whisper import Whisper

SMALL = WhisperSettings.of(
    {"model_dim": 16, "num_heads": 2, "ff_dim": 24, "encoder_layers": 2, "decoder_layers": 3}
).model_dump()


def test_the_table_names_every_weight_once() -> None:
    architecture = {**SMALL, "vocab": 30}
    names = [key.ours for key in keys(architecture)]
    model = Whisper(**architecture)
    assert len(names) == len(set(names))
    assert set(names) == {name for name, _ in model.named_parameters()}
    theirs = [name for key in keys(architecture) for name in key.names]
    assert len(theirs) == len(set(theirs))
    assert "model.decoder.layers.2.encoder_attn.k_proj.bias" not in theirs
    assert constants(architecture)["model.encoder.embed_positions.weight"].shape == (1500, 16)
    assert [layout.class_name for layout in LAYOUTS] == ["WhisperForConditionalGeneration"]


def test_what_the_hub_cannot_express_is_refused() -> None:
    written = write_config({**SMALL, "vocab": 30, "absent": 2})
    assert (written["vocab_size"], written["d_model"], written["decoder_layers"]) == (28, 16, 3)
    with pytest.raises(UsageError, match="no activation 'tanh'"):
        write_config({**SMALL, "vocab": 30, "activation": "tanh"})
