"""A model that cannot fit is refused before it is built, with what would fit."""

from __future__ import annotations

import pytest
import torch

from headwise.config.recipe import build_recipe
from headwise.errors import RecipeError
from headwise.models.transformer import Transformer
from headwise.workflows import memory_check
from headwise.workflows.memory_check import check_memory, count_parameters, free_memory

CPU = torch.device("cpu")


def test_the_estimate_is_the_number_of_parameters() -> None:
    sizes = {"model_dim": 32, "num_heads": 4, "encoder_layers": 3, "decoder_layers": 5, "ff_dim": 48}
    model = Transformer(source_vocab=100, **sizes)
    architecture = {name: value for name, value in model.architecture.items() if not name.endswith("vocab")}
    assert count_parameters("transformer", architecture, 100) == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize(
    "sizes",
    [{"model_dim": 10**9}, {"encoder_layers": 10**9}, {"ff_dim": 10**12}, {"family": "lm", "layers": 10**12}],
    ids=str,
)
def test_a_model_beyond_all_memory_is_one_line_with_what_would_fit(sizes: dict[str, object]) -> None:
    with pytest.raises(
        RecipeError, match=r"cannot be trained here: .* parameters fit, such as model\.preset = "
    ) as error:
        check_memory(build_recipe({"model": sizes}), CPU)
    assert "\n" not in str(error.value)


def test_what_fits_depends_on_the_optimizer_and_on_the_number_of_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    small = build_recipe({"model": {"preset": "tiny"}})
    count = count_parameters("transformer", small.model.settings.model_dump(mode="json"), small.tokenizer.size)
    monkeypatch.setattr(memory_check, "free_memory", lambda device: 10 * count)
    check_memory(build_recipe({"model": {"preset": "tiny"}, "training": {"optimizer": "sgd"}}), CPU)
    check_memory(small, CPU, shards=2)
    with pytest.raises(RecipeError, match=r"training\.optimizer = 'adam'"):
        check_memory(small, CPU)


def test_sizes_that_contradict_each_other_and_a_context_without_end_are_refused() -> None:
    with pytest.raises(RecipeError, match=r"num_heads .* must divide model_dim"):
        check_memory(build_recipe({"model": {"num_heads": 7}}), CPU)
    with pytest.raises(RecipeError, match=r"model\.max_length must be at most 1,048,576"):
        check_memory(build_recipe({"model": {"max_length": 10**10}}), CPU)
    for family, name in (("xl", "segment"), ("t5", "max_distance")):
        with pytest.raises(RecipeError, match=rf"model\.{name} must be at most 1,048,576"):
            check_memory(build_recipe({"model": {"family": family, name: 10**9}}), CPU)


def test_free_memory_is_known() -> None:
    assert free_memory(CPU) > 100_000_000
