from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from headwise.data.batch import Batch
from headwise.errors import ShapeError
from headwise.losses import batch_loss, class_loss, contrast_loss, soft_cross_entropy, states_loss, token_loss
from headwise.models.bert import Bert
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


def encoder(classes: int | None) -> Bert:
    torch.manual_seed(1)
    return Bert(vocab=20, classes=classes, model_dim=16, num_heads=2, layers=1, ff_dim=16, dropout=0.0)


def test_soft_and_hard_targets_are_weighted_alike() -> None:
    model, labels, weights = small(), torch.tensor([0, 2, 1]), torch.tensor([0.5, 1.0, 3.0])
    pixels = torch.randn(3, 1, 4, 4)
    hard = class_loss(model, Batch.of((pixels,), labels, ignore=-1), 0.1, weights)
    soft = class_loss(model, Batch.of((pixels,), F.one_hot(labels, 3).float(), ignore=-1), 0.1, weights)
    torch.testing.assert_close(soft.total, hard.total)
    assert soft.count == hard.count == 3


def test_the_likeliest_tokens_come_with_the_loss_outside_of_training_only() -> None:
    model, ids = encoder(None), torch.randint(4, 20, (3, 6))
    targets = torch.where(torch.rand(3, 6) < 0.5, ids, 0)
    batch = Batch.of((ids,), targets)
    trained = token_loss(model, batch)
    assert trained.answers is None
    torch.testing.assert_close(trained.total, batch_loss(model, batch).total)
    with torch.no_grad():
        answers = token_loss(model, batch).answers
        expected = model(ids).argmax(dim=-1)[targets != 0]
    assert answers is not None
    assert torch.equal(answers, expected)


def test_partners_are_told_apart_in_both_directions_within_their_group_alone() -> None:
    model, ids, lengths = encoder(0), torch.randint(4, 20, (2, 6, 5)), torch.tensor([[5, 4, 3, 5, 2, 5]] * 2)
    batch = Batch.of((ids, lengths), torch.arange(3).expand(2, 3).contiguous(), ignore=-1)
    found = contrast_loss(model, batch, 0.0, 0.1)
    expected = torch.zeros(())
    for group, length in zip(ids, lengths, strict=True):
        vectors = F.normalize(model(group, length), dim=-1)
        scores = vectors[:3] @ vectors[3:].T / 0.1
        for logits in (scores, scores.T):
            expected = expected + F.cross_entropy(logits, torch.arange(3), reduction="sum") / 2
    torch.testing.assert_close(found.total, expected)
    torch.testing.assert_close(found.log_loss, expected.detach())
    assert found.count == 6
    parts = [contrast_loss(model, part, 0.0, 0.1).total for part in batch.split(2)]
    torch.testing.assert_close(sum(parts), found.total)
