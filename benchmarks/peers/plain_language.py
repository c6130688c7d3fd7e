"""A GPT as it is usually written by hand in PyTorch, and the usual loop, run by benchmarks/language_model.py.

Fused query, key and value, `F.scaled_dot_product_attention`, tied output, `F.cross_entropy`, fused AdamW, clipping.
"""

from __future__ import annotations

import torch.nn.functional as F
from measure_language import Step, adamw, main, plain_update
from torch import Tensor, nn


class Block(nn.Module):
    def __init__(self, width: int, heads: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.joined, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, inner), nn.GELU(approximate="tanh"), nn.Linear(inner, width))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        split = self.joined(self.norm_1(x)).split(width, dim=2)
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in split)
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout, is_causal=True)
        y = self.output(y.transpose(1, 2).contiguous().view(batch, length, width))
        x = x + F.dropout(y, self.dropout)
        return x + F.dropout(self.feed(self.norm_2(x)), self.dropout)


class PlainGPT(nn.Module):
    def __init__(self, sizes: dict) -> None:
        super().__init__()
        width = sizes["model_dim"]
        self.words, self.places = nn.Embedding(sizes["vocab"], width), nn.Embedding(sizes["max_length"], width)
        self.dropout = nn.Dropout(sizes["dropout"])
        blocks = [Block(width, sizes["num_heads"], sizes["ff_dim"], sizes["dropout"]) for _ in range(sizes["layers"])]
        self.blocks, self.norm = nn.Sequential(*blocks), nn.LayerNorm(width)
        for table in (self.words, self.places):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.dropout(self.words(ids) + self.places.weight[: ids.size(1)])
        return F.linear(self.norm(self.blocks(x)), self.words.weight)


def build(request: dict) -> tuple[Step, nn.Module]:
    model = PlainGPT(request["sizes"]).train()
    optimizer = adamw(model)

    def step(ids: Tensor) -> float:
        logits = model(ids[:, :-1])
        return plain_update(model, optimizer, F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()))

    return step, model


if __name__ == "__main__":
    main(build)
