from __future__ import annotations

import pytest
import torch

from headwise.config.ranks import Ranks
from headwise.config.schema import Training
from headwise.errors import UsageError
from headwise.training.device import all_cores, choose_device, choose_precision, one_core_each


def test_a_device_that_is_not_there_is_one_clear_line() -> None:
    assert choose_device("cpu") == torch.device("cpu")
    with pytest.raises(UsageError, match=r"training\.device 'abacus' is not available on this machine; use auto"):
        choose_device("abacus")


def test_auto_takes_a_gpu_where_there_is_one_and_every_rank_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch, "empty", lambda size, device: asked.append(device))
    choose_device("auto")
    choose_device("auto", Ranks(rank=3, size=4, local_rank=1, local_size=2))
    assert asked == [torch.device("cuda"), torch.device("cuda:1")]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto") == torch.device("cpu")


def test_bf16_is_used_where_it_is_asked_for_and_by_itself_on_gpus_only() -> None:
    cpu = torch.device("cpu")
    assert choose_precision(Training(), cpu) is None
    assert choose_precision(Training(precision="bf16"), cpu) == torch.bfloat16
    assert choose_precision(Training(precision="fp32"), torch.device("cuda")) is None


def test_threads_are_as_before_afterwards() -> None:
    before = torch.get_num_threads()
    with one_core_each():
        assert torch.get_num_threads() == 1
        with all_cores(2):
            assert torch.get_num_threads() == 2
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
