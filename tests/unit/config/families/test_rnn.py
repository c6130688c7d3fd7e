from __future__ import annotations

import pytest
import torch

from headwise.config.families.rnn import FAMILY, RecurrentSettings
from headwise.config.schema import Model
from headwise.errors import ShapeError
from headwise.models.registry import build_model


def weights(family: str, **settings: object) -> int:
    resolved = Model.model_validate({"family": family, **settings}).settings.model_dump()
    with torch.device("meta"):
        model = build_model(family, {"source_vocab": 4000, "target_vocab": 4000, **resolved})
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("preset", FAMILY.presets)
def test_every_preset_is_a_model_that_can_be_built(preset: str) -> None:
    assert weights("rnn", preset=preset) > 0


@pytest.mark.parametrize("attention", ["general", "additive"])
def test_rnn_tiny_has_as_many_weights_as_the_transformers_tiny(attention: str) -> None:
    assert weights("rnn", preset="rnn-tiny", attention=attention) == pytest.approx(
        weights("transformer", preset="tiny"), rel=0.05
    )


def test_without_a_preset_it_is_luongs_model() -> None:
    settings = Model.model_validate({"family": "rnn"}).settings
    assert settings == RecurrentSettings()
    assert (settings.cell, settings.attention, settings.feeds_input) == ("lstm", "general", True)  # type: ignore[attr-defined]


def test_without_attention_there_is_nothing_to_feed() -> None:
    assert not RecurrentSettings(attention="none").feeds_input
    assert not RecurrentSettings(input_feeding=False).feeds_input


@pytest.mark.parametrize(("setting", "value"), [("cell", "rnn"), ("attention", "multiplicative"), ("hidden_dim", 0)])
def test_a_wrong_setting_is_one_line_that_names_it(setting: str, value: object) -> None:
    with pytest.raises(ShapeError, match=f"^{setting} must be "):
        RecurrentSettings.of({setting: value})
