from __future__ import annotations

import torch
from torch.testing import assert_close

from headwise.nn import Embedding
from headwise.nn.heads import ClassHead, Pooler, TokenHead, pool


def test_the_mean_is_over_the_tokens_of_a_row_alone() -> None:
    states, lengths = torch.randn(3, 5, 4), torch.tensor([5, 2, 1])
    expected = torch.stack([row[:length].mean(dim=0) for row, length in zip(states, lengths, strict=True)])
    assert_close(pool(states, lengths, "mean"), expected)
    assert_close(pool(states, None, "mean"), states.mean(dim=1))
    assert torch.equal(pool(states, lengths), states[:, 0])


def test_a_row_without_tokens_has_a_mean_of_zero() -> None:
    assert torch.equal(pool(torch.randn(1, 3, 4), torch.tensor([0]), "mean"), torch.zeros(1, 4))


def test_labels_have_the_loss_of_a_softmax_over_their_logits() -> None:
    torch.manual_seed(1)
    head, states, targets = ClassHead(4, 3), torch.randn(6, 4), torch.tensor([0, 1, 2, 0, 1, 2])
    torch.nn.init.normal_(head.linear.bias)
    total, log_loss = head.loss(states, targets)
    expected = torch.nn.functional.cross_entropy(head.logits(states), targets, reduction="sum")
    assert_close(total, expected)
    assert_close(log_loss, expected.detach())
    smoothed = torch.nn.functional.cross_entropy(head.logits(states), targets, reduction="sum", label_smoothing=0.2)
    assert_close(head.loss(states, targets, 0.2)[0], smoothed)
    slopes = [torch.autograd.grad(loss, list(head.parameters()), retain_graph=True) for loss in (total, expected)]
    for ours, theirs in zip(*slopes, strict=True):
        assert_close(ours, theirs)


def test_masked_tokens_share_the_table_of_embeddings() -> None:
    table = Embedding(9, 4, scaled=False, bias=True)
    head, states, targets = TokenHead(table), torch.randn(5, 4), torch.tensor([1, 2, 3, 4, 8])
    expected = torch.nn.functional.cross_entropy(head.logits(states), targets, reduction="sum")
    assert_close(head.loss(states, targets)[0], expected)
    assert {id(table.weight), id(table.bias)} <= {id(weight) for weight in head.parameters()}


def test_the_pooler_answers_between_minus_one_and_one() -> None:
    out = Pooler(4)(100 * torch.randn(8, 4))
    assert out.shape == (8, 4)
    assert out.abs().max() <= 1
