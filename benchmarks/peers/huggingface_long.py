"""Hugging Face's Longformer and BigBird as classifiers, run by benchmarks/long.py."""

from __future__ import annotations

import torch
from measure_long import CLASSES, VOCABULARY, Run, main
from torch import Tensor
from transformers import (
    BigBirdConfig,
    BigBirdForSequenceClassification,
    LongformerConfig,
    LongformerForSequenceClassification,
)


def build(request: dict) -> tuple[Run, torch.nn.Module]:
    sizes = {
        "vocab_size": VOCABULARY, "hidden_size": request["model_dim"], "num_attention_heads": request["num_heads"],
        "num_hidden_layers": request["layers"], "intermediate_size": request["ff_dim"], "num_labels": CLASSES,
        "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.0,
        "max_position_embeddings": max(4096, request["length"]) + 2,
    }  # fmt: skip
    if request["kind"] == "window":
        config = LongformerConfig(**sizes, attention_window=[request["window"]] * request["layers"])
        model: torch.nn.Module = LongformerForSequenceClassification(config)
    else:
        # Up to 5 + 2 · 3 blocks it would switch to full attention for good: the lengths compared are longer.
        config = BigBirdConfig(**sizes, block_size=request["block"], num_random_blocks=3)
        model = BigBirdForSequenceClassification(config)

    def run(ids: Tensor) -> Tensor:
        logits: Tensor = model(input_ids=ids).logits
        return logits

    return run, model


if __name__ == "__main__":
    main(build)
