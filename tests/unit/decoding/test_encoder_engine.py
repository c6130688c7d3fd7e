from __future__ import annotations

import numpy as np
import torch
from torch.testing import assert_close

from headwise.decoding.encoder_engine import TorchEncoder
from headwise.models.bert import Bert
from headwise.tasks.inputs.text import INPUTS


def test_answers_have_the_order_of_the_items_however_they_are_batched() -> None:
    torch.manual_seed(1)
    network = Bert(vocab=40, classes=3, model_dim=16, num_heads=2, layers=1, ff_dim=16).eval()
    chance = np.random.default_rng(1)
    items = [chance.integers(4, 40, length).tolist() for length in chance.integers(1, 60, 150)]
    found = TorchEncoder(network, INPUTS.tensors, INPUTS.cost).answers(items)
    assert found.shape == (150, 3)
    with torch.inference_mode():
        for item, row in list(zip(items, found, strict=True))[::10]:
            assert_close(torch.from_numpy(row), network(torch.tensor([item]))[0], atol=1e-5, rtol=1e-5)
