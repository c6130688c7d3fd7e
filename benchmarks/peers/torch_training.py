"""A well-written plain loop on torch.nn.Transformer, run by benchmarks/training.py.

It avoids what such loops waste: one matrix for both embeddings and the output, a causal flag instead of a mask, a
padding mask only where there is padding, one fused Adam. Dropout: attention, feed-forward, sub-layers, embeddings.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from measure_training import PAD, POSITIONS, Batch, Step, adam, main
from torch import Tensor, nn


class Translation(nn.Module):
    def __init__(self, vocabulary: int, sizes: dict) -> None:
        super().__init__()
        dim = sizes["model_dim"]
        self.embedding = nn.Embedding(vocabulary, dim)
        nn.init.normal_(self.embedding.weight, std=dim**-0.5)
        self.layers = nn.Transformer(
            dim, sizes["num_heads"], sizes["encoder_layers"], sizes["decoder_layers"], sizes["ff_dim"],
            sizes["dropout"], activation=sizes["activation"], batch_first=True, norm_first=sizes["norm"] == "pre",
        )  # fmt: skip
        self.dropout = nn.Dropout(sizes["dropout"])
        angle = torch.arange(POSITIONS)[:, None] / 10000.0 ** (torch.arange(0, dim, 2) / dim)
        self.register_buffer("positions", torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1))
        self.register_buffer("causal", torch.ones(POSITIONS, POSITIONS, dtype=torch.bool).triu(1))

    def forward(self, source: Tensor, target: Tensor, hidden: Tensor | None) -> Tensor:
        length = target.size(1)
        states = self.layers(
            self.embed(source), self.embed(target), tgt_mask=self.causal[:length, :length], tgt_is_causal=True,
            src_key_padding_mask=hidden, memory_key_padding_mask=hidden,
        )  # fmt: skip
        return F.linear(states, self.embedding.weight)

    def embed(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids) * self.embedding.embedding_dim**0.5
        return self.dropout(x + self.positions[: ids.size(1)])


def build(request: dict) -> tuple[Step, nn.Module]:
    model = Translation(request["vocabulary"], request["sizes"]).train()
    optimizer = adam(model)

    def step(batch: Batch) -> float:
        hidden = batch.source == PAD if batch.padded else None
        logits = model(batch.source, batch.target[:, :-1], hidden)
        loss = F.cross_entropy(
            logits.flatten(0, 1), batch.targets.flatten(), ignore_index=PAD, label_smoothing=request["smoothing"]
        )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step, model


if __name__ == "__main__":
    main(build)
