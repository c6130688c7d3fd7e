from __future__ import annotations

import pytest
import torch

from headwise.config.families.transformer import FAMILY, TransformerSettings
from headwise.config.schema import Model
from headwise.errors import RecipeError
from headwise.models.registry import build_model


def settings_of(**model: object) -> dict[str, object]:
    return Model.model_validate(model).settings.model_dump()


def test_the_paper_is_in_its_presets() -> None:
    base = settings_of(preset="base")
    wanted = {"model_dim": 512, "num_heads": 8, "encoder_layers": 6, "decoder_layers": 6, "ff_dim": 2048}
    assert {name: base[name] for name in wanted} == wanted
    assert (base["dropout"], base["norm"], base["positions"], base["tie"]) == (0.1, "post", "sinusoidal", "all")
    big = settings_of(preset="big")
    assert (big["model_dim"], big["num_heads"], big["ff_dim"], big["dropout"]) == (1024, 16, 4096, 0.3)


@pytest.mark.parametrize("preset", FAMILY.presets)
def test_every_preset_is_a_model_that_can_be_built(preset: str) -> None:
    settings = settings_of(preset=preset)
    with torch.device("meta"):
        model = build_model("transformer", {"source_vocab": 100, "target_vocab": 100, **settings})
    assert model.architecture.items() >= settings.items()


def test_a_setting_beside_the_preset_goes_over_it_and_the_rest_stays() -> None:
    changed = settings_of(preset="tiny", dropout=0.3, attention_dropout=0.0)
    assert changed == {**settings_of(preset="tiny"), "dropout": 0.3, "attention_dropout": 0.0}


def test_without_a_preset_it_is_the_papers_base_model() -> None:
    assert settings_of() == settings_of(preset="base") == TransformerSettings().model_dump()


def test_a_preset_of_another_family_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"unknown model\.preset 'gpt2' for family 'transformer'; there are tiny"):
        settings_of(preset="gpt2")


def test_only_learned_positions_have_an_end() -> None:
    assert TransformerSettings().longest is None
    assert TransformerSettings(positions="learned", max_length=60).longest == 60
