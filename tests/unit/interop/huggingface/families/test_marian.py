from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headwise.config.families.transformer import TransformerSettings
from headwise.errors import ModelError, UsageError
from headwise.interop.huggingface.families.marian import in_halves, keys, read_config, write_config
from headwise.interop.huggingface.published import Config
from headwise.nn import sinusoidal_positions

OPUS = {
    "d_model": 512, "encoder_layers": 6, "decoder_layers": 6, "encoder_attention_heads": 8,
    "decoder_attention_heads": 8, "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048, "vocab_size": 54688,
    "max_position_embeddings": 512,
    "scale_embedding": True, "activation_function": "swish", "normalize_before": False,
}  # fmt: skip


def test_a_config_of_opus_mt_is_understood_and_written_again() -> None:
    settings = read_config(Config(Path("config.json"), OPUS))
    whole = {
        **TransformerSettings.of(settings).model_dump(mode="json"),
        "source_vocab": 54689,
        "target_vocab": 54689,
        "absent": 1,
    }
    written = write_config(whole)
    assert {name: written[name] for name in OPUS if name != "normalize_before"} == {
        name: value for name, value in OPUS.items() if name != "normalize_before"
    }
    table = list(keys(whole))
    assert len({key.ours for key in table}) == len(table)


def test_our_sinusoids_in_their_order_are_halves() -> None:
    ours = sinusoidal_positions(5, 8)
    theirs = ours[:, [in_halves(8).index(number) for number in range(8)]]
    assert (theirs[0, :4] == 0).all()
    assert (theirs[0, 4:] == 1).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"scale_embedding": False}, "scale_embedding"),
        ({"normalize_before": True}, "normalize_before"),
        ({"decoder_ffn_dim": 7}, "decoder_ffn_dim = 7 is not supported, only 2048"),
        ({"decoder_vocab_size": 7}, "decoder_vocab_size = 7 is not supported, only 54688"),
    ],
)
def test_what_differs_from_opus_mt_is_one_line(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        read_config(Config(Path("config.json"), {**OPUS, **changes}))


@pytest.mark.parametrize(
    "changes", [{"norm": "pre"}, {"positions": "learned"}, {"tie": "none"}, {"final_norm": True}], ids=str
)
def test_what_marian_does_not_have_is_refused(changes: dict[str, Any]) -> None:
    whole = {
        **TransformerSettings.of(changes).model_dump(mode="json"),
        "source_vocab": 9,
        "target_vocab": 9,
        "absent": 0,
    }
    with pytest.raises(UsageError, match="MarianMT has"):
        write_config(whole)
