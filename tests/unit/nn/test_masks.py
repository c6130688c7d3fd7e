from __future__ import annotations

import pytest
import torch

from headwise.errors import ShapeError
from headwise.nn.masks import causal_mask, padding_mask


def test_a_query_sees_itself_and_what_is_before_it_also_after_a_past() -> None:
    assert causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    assert causal_mask(2, past=2).tolist() == [[True, True, True, False], [True] * 4]


def test_padding_is_what_is_beyond_the_length_of_a_row() -> None:
    assert padding_mask(torch.tensor([2, 0, 3]), 3).tolist() == [[True, True, False], [False] * 3, [True] * 3]


def test_what_is_no_length_is_one_clear_line() -> None:
    with pytest.raises(ShapeError, match="-1"):
        causal_mask(-1)
    with pytest.raises(ShapeError, match=r"\(2, 2\)"):
        padding_mask(torch.zeros(2, 2), 3)
