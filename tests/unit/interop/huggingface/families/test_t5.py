from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headwise.config.families.t5 import T5Settings
from headwise.errors import ModelError, UsageError
from headwise.interop.huggingface.families.t5 import read_config, write_config
from headwise.interop.huggingface.published import Config

SMALL = {"d_model": 512, "num_heads": 8, "d_kv": 64, "num_layers": 6, "d_ff": 2048}


def read(**values: Any) -> dict[str, Any]:
    return read_config(Config(Path("config.json"), {**SMALL, **values}))


def test_the_config_of_t5_small_is_our_default() -> None:
    assert T5Settings.of(read()) == T5Settings()


def test_both_ways_to_say_that_the_output_is_not_scaled_mean_version_1_1() -> None:
    for said in ({"tie_word_embeddings": False}, {"tie_word_embeddings": True, "scale_decoder_outputs": False}):
        found = read(feed_forward_proj="gated-gelu", **said)
        assert (found["tie"], found["gated"], found["activation"]) == ("none", True, "gelu-tanh")


@pytest.mark.parametrize("name", ["relu", "gated-gelu", "gated-silu", "gelu_new"])
def test_what_is_read_is_written_again(name: str) -> None:
    settings = T5Settings.of(read(feed_forward_proj=name, num_decoder_layers=2, dropout_rate=0.2)).model_dump()
    written = write_config({"vocab": 101, **settings, "absent": 1})
    assert (written["feed_forward_proj"], written["num_decoder_layers"], written["vocab_size"]) == (name, 2, 100)
    assert read(**written) == read(feed_forward_proj=name, num_decoder_layers=2, dropout_rate=0.2)


def test_what_cannot_be_expressed_is_one_clear_line() -> None:
    with pytest.raises(ModelError, match=r"feed_forward_proj = 'gated-tanh' is not supported"):
        read(feed_forward_proj="gated-tanh")
    with pytest.raises(ModelError, match="layer_norm_epsilon = 1e-05 is not supported"):
        read(layer_norm_epsilon=1e-5)
    with pytest.raises(UsageError, match="no gated exact GELU"):
        write_config({"vocab": 9, **T5Settings(gated=True, activation="gelu").model_dump()})
