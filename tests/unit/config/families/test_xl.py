from __future__ import annotations

import pytest
import torch

from headwise.config.families.xl import FAMILY, LONGEST_MEMORY, TransformerXLSettings
from headwise.config.recipe import load_recipe
from headwise.errors import ShapeError
from headwise.models.registry import build_model


def test_its_presets_build_and_the_base_is_the_papers_model() -> None:
    base = FAMILY.resolve("xl-base", {})
    with torch.device("meta"):
        model = build_model("xl", {"vocab": 100, **base.model_dump(mode="json")})
    assert (model.segment, model.memory) == (150, 150)
    assert model.stack.layers[0].self_attention.head_dim == 41  # type: ignore[union-attr, index]
    assert FAMILY.resolve("xl-small", {}) == TransformerXLSettings()


def test_it_asks_for_streams_and_the_adaptive_softmax_excludes_label_smoothing() -> None:
    assert TransformerXLSettings.streams
    assert TransformerXLSettings().no_label_smoothing is None
    assert TransformerXLSettings(cutoffs=(10,)).no_label_smoothing == "cutoffs"


def test_the_recipe_differs_from_the_plain_language_models_in_the_model_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HEADWISE_DATA", "corpora")
    ours, plain = load_recipe("wikitext2-xl")[0], load_recipe("wikitext2-lm")[0]
    assert (ours.training, ours.tokenizer, ours.data) == (plain.training, plain.tokenizer, plain.data)
    assert ours.model.family == "xl"


def test_a_memory_that_nothing_can_hold_is_refused_at_once() -> None:
    assert TransformerXLSettings(memory=LONGEST_MEMORY).memory == LONGEST_MEMORY
    with pytest.raises(ShapeError, match="memory must be less than or equal to 65536"):
        TransformerXLSettings.of({"memory": LONGEST_MEMORY + 1})
