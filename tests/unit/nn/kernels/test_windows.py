from __future__ import annotations

import pytest
import torch

from headwise.nn.kernels.windows import windows


@pytest.mark.parametrize(("block", "side"), [(4, 4), (4, 1), (2, 5), (6, 9), (12, 3)])
def test_each_block_has_its_neighbours_on_either_side(block: int, side: int) -> None:
    x = torch.arange(1, 2 * 12 + 1.0).view(2, 1, 12, 1).expand(-1, 3, -1, 2)  # token n of the stream is n
    found = windows(x, block, side)
    assert found.shape == (24 // block, 3, block + 2 * side, 2)
    for number in range(24 // block):
        first = number * block - side
        expected = [float(place + 1) if 0 <= place < 24 else 0.0 for place in range(first, first + block + 2 * side)]
        assert found[number, 2, :, 1].tolist() == expected


@pytest.mark.parametrize(("block", "side"), [(4, 4), (4, 1), (2, 5), (6, 9), (12, 3)])
def test_gradients_add_up_over_all_windows_that_a_token_is_in(block: int, side: int) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 3, 12, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda y: windows(y, block, side), (x,))
