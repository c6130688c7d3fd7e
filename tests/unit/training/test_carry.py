from __future__ import annotations

import torch

from headwise.data.batch import Batch
from headwise.training.carry import Carry
from headwise.training.distributed import ALONE


def batch(index: int, rows: int = 4) -> Batch:
    ids = torch.arange(1, rows * 3 + 1).view(rows, 3)
    return Batch.of((ids,), ids, index=index)


def test_what_a_batch_leaves_behind_comes_after_the_inputs_of_the_next_one_row_by_row() -> None:
    carry, left = Carry(), torch.randn(4, 2, 5)
    assert carry.into(batch(0)).inputs[1:] == ()
    carry.keep([(left[:1], left[:1] + 1), (left[1:], left[1:] + 1)])  # of two shares
    following = carry.into(batch(1))
    assert [tuple(x.shape) for x in following.inputs] == [(4, 3), (4, 2, 5), (4, 2, 5)]
    parts = following.split(3)
    assert torch.equal(torch.cat([part.inputs[2] for part in parts]), left + 1)
    assert torch.equal(torch.cat([part.targets for part in parts]), following.targets)


def test_an_epoch_begins_anew() -> None:
    carry = Carry()
    carry.keep([(torch.randn(4, 2, 5),)])
    assert len(carry.into(batch(0)).inputs) == 1
    assert carry.tensors == ()


def test_it_is_gathered_by_number_and_restored_to_any_number_of_ranks() -> None:
    carry, other = Carry(), Carry()
    carry.keep([tuple(torch.randn(5, 2) for _ in range(12))])
    stored = carry.gathered(ALONE)
    assert list(stored) == [str(number) for number in range(12)]
    other.restore(stored, ALONE, torch.device("cpu"))
    assert all(torch.equal(a, b) for a, b in zip(carry.tensors, other.tensors, strict=True))
    other.restore({}, ALONE, torch.device("cpu"))
    assert other.tensors == ()
