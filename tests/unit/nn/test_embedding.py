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
