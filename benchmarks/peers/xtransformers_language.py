"""x-transformers, run by benchmarks/language_model.py: a causal decoder of the same sizes, with its fused attention."""

from __future__ import annotations

import torch
from measure_language import Step, adamw, main, plain_update
from x_transformers import Decoder, TransformerWrapper


def build(request: dict) -> tuple[Step, torch.nn.Module]:
    sizes = request["sizes"]
    width, dropout = sizes["model_dim"], sizes["dropout"]
    model = TransformerWrapper(
        num_tokens=sizes["vocab"], max_seq_len=sizes["max_length"], emb_dropout=dropout, tie_embedding=True,
        attn_layers=Decoder(
            dim=width, depth=sizes["layers"], heads=sizes["num_heads"], attn_dim_head=width // sizes["num_heads"],
            ff_mult=sizes["ff_dim"] / width, attn_flash=True, attn_dropout=dropout, ff_dropout=dropout,
        ),
    ).train()  # fmt: skip
    optimizer = adamw(model)

    def step(ids: torch.Tensor) -> float:
        logits = model(ids[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        return plain_update(model, optimizer, loss)

    return step, model


if __name__ == "__main__":
    main(build)
