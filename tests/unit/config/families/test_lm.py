from __future__ import annotations

import pytest
import torch

from headwise.config.families.lm import FAMILY, LanguageModelSettings
from headwise.config.recipe import build_recipe
from headwise.config.schema import Model
from headwise.errors import RecipeError
from headwise.models.registry import build_model


@pytest.mark.parametrize("preset", FAMILY.presets)
def test_every_preset_is_a_model_that_can_be_built(preset: str) -> None:
    settings = Model.model_validate({"family": "lm", "preset": preset}).settings.model_dump(mode="json")
    with torch.device("meta"):
        model = build_model("lm", {"vocab": 100, **settings})
    assert model.architecture == {"vocab": 100, **settings}


def test_gpt2_has_the_124_million_weights_of_the_original() -> None:
    with torch.device("meta"):
        model = build_model("lm", {"vocab": 50257, **FAMILY.presets["gpt2"]})
    assert sum(parameter.numel() for parameter in model.parameters()) == 124_439_808


def test_without_a_preset_it_is_small() -> None:
    assert Model.model_validate({"family": "lm"}).settings == LanguageModelSettings()


def test_a_setting_of_another_family_is_an_unknown_key() -> None:
    with pytest.raises(RecipeError, match=r"unknown key 'model\.encoder_layers'"):
        build_recipe({"model": {"family": "lm", "encoder_layers": 2}})


def test_it_sees_max_length_tokens_at_once_and_with_cutoffs_it_is_not_smoothed() -> None:
    assert LanguageModelSettings(max_length=30).longest == 30
    assert LanguageModelSettings().no_label_smoothing is None
    assert LanguageModelSettings.of({"cutoffs": [10, 20]}).no_label_smoothing == "cutoffs"
