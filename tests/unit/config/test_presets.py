from __future__ import annotations

from typing import Any

import pytest

from headwise.config.presets import DEFAULT_PRESET, PRESETS, resolve_architecture
from headwise.config.schema import Model
from headwise.errors import RecipeError
from headwise.models.registry import FAMILIES

ALL = [(family, name) for family, presets in PRESETS.items() for name in presets]


def test_the_paper_is_in_them() -> None:
    base = resolve_architecture(Model(preset="base"))
    wanted = {"model_dim": 512, "num_heads": 8, "encoder_layers": 6, "decoder_layers": 6, "ff_dim": 2048}
    assert {name: base[name] for name in wanted} == wanted
    assert (base["dropout"], base["norm"], base["positions"], base["tie"]) == (0.1, "post", "sinusoidal", "all")
    big = resolve_architecture(Model(preset="big"))
    assert (big["model_dim"], big["num_heads"], big["ff_dim"], big["dropout"]) == (1024, 16, 4096, 0.3)


@pytest.mark.parametrize(("family", "name"), ALL)
def test_every_preset_is_a_model_that_can_be_built(family: Any, name: str) -> None:
    import torch

    architecture = resolve_architecture(Model(family=family, preset=name))
    vocabulary = {"vocab": 100} if family == "lm" else {"source_vocab": 100, "target_vocab": 100}
    with torch.device("meta"):
        model = FAMILIES[family](**vocabulary, **architecture)
    assert model.architecture.items() >= architecture.items()


def test_a_number_beside_the_preset_goes_over_it_and_the_rest_stays() -> None:
    changed = resolve_architecture(Model(preset="tiny", dropout=0.3, attention_dropout=0.0))
    assert changed == {**PRESETS["transformer"]["tiny"], "dropout": 0.3, "attention_dropout": 0.0}


@pytest.mark.parametrize("family", ["transformer", "lm"])
def test_without_a_preset_the_family_has_a_default(family: Any) -> None:
    assert resolve_architecture(Model(family=family)) == PRESETS[family][DEFAULT_PRESET[family]]


def test_what_a_family_does_not_have_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"unknown model\.preset 'gpt2' for family 'transformer'; there are tiny"):
        resolve_architecture(Model(preset="gpt2"))
    with pytest.raises(RecipeError, match=r"model\.encoder_layers does not belong to family 'lm'"):
        resolve_architecture(Model(family="lm", encoder_layers=2))
