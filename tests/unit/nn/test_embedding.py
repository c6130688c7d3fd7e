from __future__ import annotations

import pytest
import torch

from headwise.errors import ShapeError
from headwise.nn.embedding import Embedding


def test_vectors_are_scaled_by_the_root_of_the_width_and_logits_are_products_with_them() -> None:
    embedding, ids = Embedding(5, 4), torch.tensor([[3, 1]])
    torch.testing.assert_close(embedding(ids), embedding.weight[ids] * 2.0)
    plain = Embedding(5, 4, scaled=False)
    torch.testing.assert_close(plain(ids), plain.weight[ids])
    states = torch.randn(2, 3, 4)
    torch.testing.assert_close(embedding.logits(states), states @ embedding.weight.T)


@pytest.mark.parametrize(("ids", "words"), [([[1, 5]], ["0…4", "5"]), ([[-1]], ["0…4", "-1"]), ([[1.5]], ["integers"])])
def test_an_id_that_is_none_is_one_clear_line(ids: list[list[float]], words: list[str]) -> None:
    with pytest.raises(ShapeError) as caught:
        Embedding(5, 4)(torch.tensor(ids))
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in words)


def test_tokens_without_a_vector_are_never_likely_and_cost_nothing() -> None:
    whole, part = Embedding(7, 4), Embedding(10, 4, absent=3)
    part.load_state_dict(whole.state_dict())
    ids, states = torch.tensor([[0, 6]]), torch.randn(5, 4)
    torch.testing.assert_close(part(ids + 3), whole(ids))
    torch.testing.assert_close(part.logits(states)[:, 3:], whole.logits(states))
    assert part.logits(states)[:, :3].max() < -9000
    targets = torch.tensor([0, 1, 2, 3, 6])
    for smoothing in (0.0, 0.1):
        torch.testing.assert_close(part.loss(states, targets + 3, smoothing), whole.loss(states, targets, smoothing))


def test_a_bias_is_added_to_the_logits_and_learns() -> None:
    embedding, states, targets = Embedding(6, 4, bias=True), torch.randn(5, 4), torch.tensor([0, 1, 2, 3, 5])
    assert embedding.bias is not None
    with torch.no_grad():
        embedding.bias.normal_()
    logits = states @ embedding.weight.T + embedding.bias
    torch.testing.assert_close(embedding.logits(states), logits)
    expected = torch.nn.functional.cross_entropy(logits, targets, label_smoothing=0.1, reduction="sum")
    total, _ = embedding.loss(states, targets, 0.1)
    torch.testing.assert_close(total, expected)
    found, wanted = (torch.autograd.grad(loss, embedding.bias)[0] for loss in (total, expected))
    torch.testing.assert_close(found, wanted)


def test_a_token_without_a_vector_in_the_text_is_one_clear_line() -> None:
    with pytest.raises(ShapeError, match="no vector for token 1"):
        Embedding(10, 4, absent=3)(torch.tensor([[0, 5, 1]]))
