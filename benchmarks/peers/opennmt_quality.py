"""OpenNMT-py's model and loss, run by benchmarks/time_to_quality.py until the time is up."""

from __future__ import annotations

import torch
from measure_quality import main
from measure_training import PAD
from opennmt_training import build
from torch import Tensor, nn


def predict(model: nn.Module, source: Tensor, lengths: Tensor, said: Tensor) -> Tensor:
    """Its forward pass leaves out the last token that it is given, which in training is the last target."""
    target = torch.cat((said, torch.full((len(said), 1), PAD)), dim=1)
    states, _ = model(source[:, :, None], target[:, :, None], lengths)
    return model.generator(states[:, -1])


if __name__ == "__main__":
    main(build, predict)
