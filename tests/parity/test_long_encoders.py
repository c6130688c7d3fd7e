"""Longformer and BigBird compute what `transformers` computes with the same weights: masked tokens, with padding."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from headwise.models.bert import Bert
from headwise.models.bigbird import BigBird
from headwise.models.longformer import Longformer

VOCAB, PAD = 60, 1
SIZES: dict[str, Any] = {"model_dim": 32, "num_heads": 4, "layers": 2, "ff_dim": 48}
THEIRS: dict[str, Any] = {
    "vocab_size": VOCAB, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
    "pad_token_id": PAD,
}  # fmt: skip
LAYER = {
    "self_attention.output": "attention.output.dense", "self_residual.norm": "attention.output.LayerNorm",
    "feed_forward.inner": "intermediate.dense", "feed_forward.outer": "output.dense",
    "feed_residual.norm": "output.LayerNorm",
}  # fmt: skip


@torch.no_grad()
def copied(ours: Bert, theirs: Any, prefix: str, head: dict[str, str], skipped: int) -> Bert:
    """Ours with the weights of theirs, all of them drawn anew; positions begin with row `skipped` there."""
    torch.manual_seed(1)
    for weight in theirs.parameters():
        weight.normal_(std=0.2)
    table = dict(theirs.named_parameters())
    for name, weight in ours.named_parameters():
        if name.startswith("encoder"):
            _, _, number, part = name.split(".", 3)
            layer = f"{prefix}.encoder.layer.{number}."
            module, _, kind = part.rpartition(".")
            if module.endswith("query_key_value"):
                suffix = "_global" if "global" in module else ""
                parts = [f"{layer}attention.self.{one}{suffix}.{kind}" for one in ("query", "key", "value")]
                weight.copy_(torch.cat([table[part] for part in parts]))
            else:
                weight.copy_(table[f"{layer}{LAYER[module]}.{kind}"])
        elif name in head:
            weight.copy_(table[head[name]])
        else:
            kind = name.rpartition(".")[2]
            found = {
                "embedding": "word_embeddings", "positions": "position_embeddings", "segments": "token_type_embeddings",
                "norm": "LayerNorm",
            }[name.split(".")[0]]  # fmt: skip
            value = table[f"{prefix}.embeddings.{found}.{kind}"]
            weight.copy_(value[skipped:] if name.startswith("positions") else value)
    return ours.eval()


def inputs(length: int, *lengths: int) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(2)
    ids, real = torch.randint(4, VOCAB, (len(lengths), length)), torch.tensor(lengths)
    mask = (torch.arange(length) < real[:, None]).long()
    return ids.masked_fill(mask == 0, PAD), real, mask


@pytest.mark.parametrize("length", [5, 16, 43])
@torch.no_grad()
def test_longformer_gives_the_logits_of_transformers(length: int) -> None:
    import transformers

    config = transformers.LongformerConfig(
        **THEIRS, attention_window=8, max_position_embeddings=64 + PAD + 1, type_vocab_size=1
    )
    theirs = transformers.LongformerForMaskedLM(config).eval()
    ours = Longformer(vocab=VOCAB, **SIZES, window=8, max_length=64, norm_epsilon=config.layer_norm_eps)
    head = {
        "output.dense.weight": "lm_head.dense.weight", "output.dense.bias": "lm_head.dense.bias",
        "output.norm.weight": "lm_head.layer_norm.weight", "output.norm.bias": "lm_head.layer_norm.bias",
        "embedding.bias": "lm_head.bias",
    }  # fmt: skip
    copied(ours, theirs, "longformer", head, PAD + 1)
    ids, lengths, mask = inputs(length, length, max(2, length // 2))
    first = torch.zeros_like(ids)
    first[:, 0] = 1
    expected = theirs(ids, attention_mask=mask, global_attention_mask=first).logits
    found = ours(ids, lengths, torch.zeros_like(ids))
    assert_close(found[mask.bool()], expected[mask.bool()], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("length", [20, 48, 61])  # up to 36 tokens, 9 blocks, it sees everything
@torch.no_grad()
def test_bigbird_gives_the_logits_of_transformers_in_evaluation(length: int) -> None:
    import transformers

    config = transformers.BigBirdConfig(
        **THEIRS, block_size=4, num_random_blocks=2, max_position_embeddings=64, attention_type="block_sparse"
    )
    theirs = transformers.BigBirdForMaskedLM(config).eval()
    ours = BigBird(
        vocab=VOCAB, **SIZES, block=4, random=2, draw=False, max_length=64, norm_epsilon=config.layer_norm_eps
    )
    start = "cls.predictions"
    head = {
        "output.dense.weight": f"{start}.transform.dense.weight", "output.dense.bias": f"{start}.transform.dense.bias",
        "output.norm.weight": f"{start}.transform.LayerNorm.weight",
        "output.norm.bias": f"{start}.transform.LayerNorm.bias", "embedding.bias": f"{start}.bias",
    }  # fmt: skip
    copied(ours, theirs, "bert", head, 0)
    ids, lengths, mask = inputs(length, length, length - 7)
    expected = theirs(ids, attention_mask=mask, token_type_ids=torch.zeros_like(ids)).logits
    found = ours(ids, lengths, torch.zeros_like(ids))
    assert_close(found[mask.bool()], expected[mask.bool()], atol=1e-4, rtol=1e-4)
