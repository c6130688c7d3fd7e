from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from headwise.data.batch import Batch
from headwise.errors import ShapeError
from headwise.losses import batch_loss, soft_cross_entropy, states_loss
from headwise.models.vit import ViT


def small() -> ViT:
    torch.manual_seed(0)
    return ViT(image_size=4, patch_size=2, model_dim=8, num_heads=2, layers=1, ff_dim=8, channels=1, classes=3)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_soft_targets_that_are_certain_are_hard_targets(smoothing: float) -> None:
    model, states, labels = small(), torch.randn(5, 8), torch.tensor([0, 2, 1, 1, 0])
    hard = states_loss(model, states, labels, smoothing, ignore=-1)
    soft = states_loss(model, states, F.one_hot(labels, 3).float(), smoothing)
    torch.testing.assert_close(soft.total, hard.total)
    torch.testing.assert_close(soft.log_loss, hard.log_loss)
    assert soft.count == hard.count == 5
    one, other = (torch.autograd.grad(loss.total, list(model.output.parameters())) for loss in (hard, soft))
    for left, right in zip(one, other, strict=True):
        torch.testing.assert_close(left, right, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_soft_targets_are_weighed_as_pytorch_does(smoothing: float) -> None:
    logits, targets = torch.randn(6, 4, requires_grad=True), torch.rand(6, 4).softmax(dim=1)
    found = soft_cross_entropy(logits, targets, smoothing)
    expected = F.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(found.total, expected)
    torch.testing.assert_close(found.log_loss, F.cross_entropy(logits, targets, reduction="sum"))
    assert not found.log_loss.requires_grad


def test_soft_targets_of_another_shape_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"soft targets must be \(2, 3\)"):
        soft_cross_entropy(torch.zeros(2, 3), torch.zeros(2, 4))


def test_shares_of_a_batch_with_soft_targets_sum_to_the_whole() -> None:
    model = small().eval()
    batch = Batch.of((torch.randn(6, 1, 4, 4),), torch.rand(6, 3).softmax(dim=1), ignore=-1)
    whole, parts = batch_loss(model, batch), [batch_loss(model, part) for part in batch.split(4)]
    torch.testing.assert_close(sum(part.total for part in parts), whole.total)
    assert sum(part.count for part in parts) == whole.count == 6
