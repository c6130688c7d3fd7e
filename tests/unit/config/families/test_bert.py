from __future__ import annotations

import pytest
import torch

from headwise.config.families.bert import FAMILY, BertSettings
from headwise.errors import ShapeError
from headwise.models.registry import build_model

# Without the vocabulary and its bias, positions, segments and pooler, as Turc et al. 2019 count: 2 × 128 … 12 × 768.
LAYERS = {"bert-tiny": 396_544, "bert-mini": 3_159_040, "bert-small": 12_609_536, "bert-base": 85_054_464}


@pytest.mark.parametrize(("preset", "expected"), LAYERS.items())
def test_presets_have_the_sizes_of_the_published_models(preset: str, expected: int) -> None:
    with torch.device("meta"):
        model = build_model("bert", {"vocab": 100, **FAMILY.resolve(preset, {}).model_dump()})
    assert sum(weight.numel() for weight in model.encoder.parameters()) == expected  # type: ignore[union-attr]
    assert set(LAYERS) == set(FAMILY.presets)


def test_the_defaults_are_bert_base() -> None:
    settings = BertSettings()
    assert (settings.layers, settings.model_dim, settings.num_heads, settings.ff_dim) == (12, 768, 12, 3072)
    assert (settings.norm, settings.norm_epsilon, settings.activation, settings.longest) == ("post", 1e-12, "gelu", 512)


@pytest.mark.parametrize(("setting", "value"), [("pooling", "last"), ("norm_epsilon", 0.0), ("segments", 0)])
def test_a_wrong_setting_is_one_line_that_names_it(setting: str, value: object) -> None:
    with pytest.raises(ShapeError, match=f"^{setting} must be "):
        BertSettings.of({setting: value})
