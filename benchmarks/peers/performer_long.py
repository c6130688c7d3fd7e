"""performer-pytorch's bidirectional model with a class head, run by benchmarks/long.py."""

from __future__ import annotations

import torch
from measure_long import CLASSES, VOCABULARY, Run, main
from performer_pytorch import PerformerLM
from torch import Tensor


class Classifier(torch.nn.Module):
    def __init__(self, request: dict) -> None:
        super().__init__()
        width = request["model_dim"]
        self.body = PerformerLM(
            num_tokens=VOCABULARY, max_seq_len=max(4096, request["length"]), dim=width, depth=request["layers"],
            heads=request["num_heads"], dim_head=width // request["num_heads"], causal=False,
            nb_features=request["features"], ff_mult=request["ff_dim"] // width, ff_dropout=0.1,
        )  # fmt: skip
        self.head = torch.nn.Linear(width, CLASSES)

    def forward(self, ids: Tensor) -> Tensor:
        states: Tensor = self.body(ids, return_encodings=True)
        logits: Tensor = self.head(states.mean(dim=1))
        return logits


def build(request: dict) -> tuple[Run, torch.nn.Module]:
    model = Classifier(request)
    return model, model


if __name__ == "__main__":
    main(build)
