from __future__ import annotations

import pytest
import torch

from headwise.errors import ShapeError
from headwise.nn.relative_bias import RelativeBias, relative_buckets


def test_near_distances_have_a_bucket_each_and_far_ones_share_the_last() -> None:
    before = relative_buckets(torch.arange(0, -200, -1), two_sided=False)
    assert before[:16].tolist() == list(range(16))
    assert before.tolist() == sorted(before.tolist())
    assert set(before[113:].tolist()) == {31}
    both = relative_buckets(torch.tensor([-128, -8, -1, 0, 1, 8, 128]))
    assert both.tolist() == [15, 8, 1, 0, 17, 24, 31]


def test_what_a_causal_mask_hides_counts_as_distance_0() -> None:
    assert relative_buckets(torch.tensor([1, 5, 300]), two_sided=False).tolist() == [0, 0, 0]


def test_an_entry_of_the_bias_is_the_number_of_its_distance() -> None:
    bias = RelativeBias(num_heads=3, buckets=8, max_distance=20)
    torch.nn.init.normal_(bias.weight)
    found = bias(5, 7)  # the queries are the last 5 of 7 positions
    assert found.shape == (1, 3, 5, 7)
    for query in range(5):
        for key in range(7):
            bucket = relative_buckets(torch.tensor(key - (query + 2)), 8, 20)
            torch.testing.assert_close(found[0, :, query, key], bias.weight[bucket])


def test_a_step_has_the_last_row_of_the_whole() -> None:
    bias = RelativeBias(num_heads=2, two_sided=False)
    torch.nn.init.normal_(bias.weight)
    whole = bias(40, 40)
    for length in (1, 17, 40):
        assert torch.equal(bias(1, length)[0, :, 0], whole[0, :, -1, -length:])


def test_the_gradient_of_a_bucket_sums_over_its_distances() -> None:
    bias = RelativeBias(num_heads=1, buckets=4, max_distance=4, two_sided=False)
    bias(3, 3).sum().backward()
    assert bias.weight.grad is not None
    assert bias.weight.grad[:, 0].tolist() == [6.0, 2.0, 1.0, 0.0]  # distances 0 (and hidden ones), 1, 2


@pytest.mark.parametrize(("buckets", "max_distance"), [(2, 128), (32, 8), (3, 10)])
def test_impossible_buckets_are_one_clear_line(buckets: int, max_distance: int) -> None:
    with pytest.raises(ShapeError, match="buckets with max_distance"):
        RelativeBias(4, buckets, max_distance)
