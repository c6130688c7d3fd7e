"""The plain loop on torch.nn.Transformer, run by benchmarks/time_to_quality.py until the time is up."""

from __future__ import annotations

from measure_quality import main
from measure_training import PAD
from torch import Tensor, nn
from torch_training import build


def predict(model: nn.Module, source: Tensor, lengths: Tensor, said: Tensor) -> Tensor:
    hidden = source == PAD
    return model(source, said, hidden if bool(hidden.any()) else None)[:, -1]


if __name__ == "__main__":
    main(build, predict)
