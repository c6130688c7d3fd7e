from __future__ import annotations

import pytest
import torch

from headwise.config.families.t5 import FAMILY, T5Settings
from headwise.config.schema import Model
from headwise.models.registry import build_model


def weights(family: str, preset: str, **sizes: int) -> int:
    resolved = Model.model_validate({"family": family, "preset": preset}).settings.model_dump()
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in build_model(family, {**sizes, **resolved}).parameters())


@pytest.mark.parametrize(("preset", "millions"), [("t5-small", 60.5), ("t5-base", 222.9), ("t5-v1.1-small", 77.0)])
def test_presets_have_the_published_numbers_of_weights(preset: str, millions: float) -> None:
    assert weights("t5", preset, vocab=32128) / 1e6 == pytest.approx(millions, abs=0.1)


def test_t5_tiny_has_the_size_of_the_transformers_tiny() -> None:
    other = weights("transformer", "tiny", source_vocab=4000, target_vocab=4000)
    assert weights("t5", "t5-tiny", vocab=4000) == pytest.approx(other, rel=0.02)


def test_without_a_preset_it_is_the_small_model_of_version_1_0() -> None:
    assert Model.model_validate({"family": "t5"}).settings == T5Settings()
    assert FAMILY.presets["t5-small"] == {}
