from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from headwise.config.families.longformer import FAMILY
from headwise.models.longformer import Longformer


def small(classes: int | None = None) -> Longformer:
    torch.manual_seed(0)
    return Longformer(
        vocab=30, classes=classes, model_dim=16, num_heads=2, layers=2, ff_dim=24, window=8, max_length=90
    ).eval()


@pytest.mark.parametrize("classes", [None, 0, 3])
@torch.no_grad()
def test_a_text_says_the_same_alone_and_padded_in_a_batch(classes: int | None) -> None:
    model, ids, lengths = small(classes), torch.randint(4, 30, (3, 80)), torch.tensor([80, 31, 5])
    together = model(ids, lengths)
    for row, length in enumerate(lengths.tolist()):
        alone = model(ids[row : row + 1, :length])[0]
        found = together[row, :length] if classes is None else together[row]
        assert_close(found, alone, atol=1e-5, rtol=1e-5)


def test_every_weight_learns_and_the_network_is_built_again_from_its_architecture() -> None:
    model, ids = small(3), torch.randint(4, 30, (2, 80))
    model.train()
    model(ids).square().sum().backward()
    assert [name for name, weight in model.named_parameters() if weight.grad is None] == []
    again = Longformer(**model.architecture)
    assert again.architecture == model.architecture


def test_its_presets_build() -> None:
    for preset in FAMILY.presets:
        with torch.device("meta"):
            model = Longformer(vocab=30, **FAMILY.resolve(preset, {}).model_dump(mode="json"))
        assert model.max_length is not None
