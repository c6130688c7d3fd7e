from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing import assert_close

from headwise.config.families.performer import FAMILY
from headwise.errors import ShapeError
from headwise.models.performer import Performer


def small(**changes: Any) -> Performer:
    torch.manual_seed(0)
    sizes = {"vocab": 30, "model_dim": 16, "num_heads": 2, "layers": 2, "ff_dim": 24, "features": 12, "max_length": 60}
    return Performer(**{**sizes, **changes}).eval()


@pytest.mark.parametrize("changes", [{}, {"norm": "post", "positions": "learned", "tie": "none"}], ids=str)
@torch.inference_mode()
def test_steps_give_the_logits_of_the_whole_text(changes: dict[str, Any]) -> None:
    model, ids = small(**changes), torch.randint(0, 30, (3, 40))
    expected, state = model(ids), model.start(None, 1)
    logits = model.output.logits(model.advance(state, ids[:, :9]))
    assert_close(logits, expected[:, 8], atol=1e-5, rtol=1e-5)
    rows = torch.tensor([2, 0])
    state.reorder(rows)
    for place in range(9, 40):
        logits = model.output.logits(model.advance(state, ids[rows, place]))
        assert_close(logits, expected[rows, place], atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_a_classifier_reads_from_both_sides_and_padding_changes_nothing() -> None:
    model, ids, lengths = small(classes=3), torch.randint(4, 30, (2, 40)), torch.tensor([40, 11])
    together = model(ids, lengths)
    assert together.shape == (2, 3)
    assert_close(together[1:], model(ids[1:, :11]), atol=1e-5, rtol=1e-5)
    changed = ids.clone()
    changed[:, -1] = (changed[:, -1] + 1) % 30
    assert not torch.allclose(model(changed), model(ids))


def test_features_are_stored_but_not_trained_and_the_rest_learns() -> None:
    model = small().train()
    model(torch.randint(0, 30, (2, 20))).square().sum().backward()
    still = [name for name, weight in model.named_parameters() if weight.grad is None]
    assert still == [f"stack.layers.{number}.self_attention.projection" for number in range(2)]


def test_wrong_sizes_are_one_clear_line() -> None:
    with pytest.raises(ShapeError, match="num_heads"):
        small(num_heads=3)
    with pytest.raises(ShapeError, match="at least 1 class"):
        small(classes=0)
    with pytest.raises(ShapeError, match="cannot write"):
        small(classes=2).start()


def test_its_presets_build() -> None:
    for preset in FAMILY.presets:
        with torch.device("meta"):
            model = Performer(vocab=30, **FAMILY.resolve(preset, {}).model_dump(mode="json"))
        assert model.max_length is not None
