"""BERT computes what `transformers` computes: masked tokens, labels and plain states, with padding, and gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from headwise.models.bert import Bert

VOCAB, CLASSES = 60, 5
# Names of weights: ours, and theirs behind "bert.".
EMBEDDINGS = {
    "embedding.weight": "embeddings.word_embeddings.weight",
    "positions.weight": "embeddings.position_embeddings.weight",
    "segments.weight": "embeddings.token_type_embeddings.weight",
    "norm.weight": "embeddings.LayerNorm.weight",
    "norm.bias": "embeddings.LayerNorm.bias",
}
LAYER = {
    "self_attention.output": "attention.output.dense",
    "self_residual.norm": "attention.output.LayerNorm",
    "feed_forward.inner": "intermediate.dense",
    "feed_forward.outer": "output.dense",
    "feed_residual.norm": "output.LayerNorm",
}
HEADS = {
    "pooler.dense.weight": "bert.pooler.dense.weight",
    "pooler.dense.bias": "bert.pooler.dense.bias",
    "output.linear.weight": "classifier.weight",
    "output.linear.bias": "classifier.bias",
    "output.dense.weight": "cls.predictions.transform.dense.weight",
    "output.dense.bias": "cls.predictions.transform.dense.bias",
    "output.norm.weight": "cls.predictions.transform.LayerNorm.weight",
    "output.norm.bias": "cls.predictions.transform.LayerNorm.bias",
    "embedding.bias": "cls.predictions.bias",
}
CONFIGURATIONS: list[dict[str, Any]] = [
    {},
    {"hidden_act": "gelu_new", "num_hidden_layers": 1},
    {"hidden_size": 24, "num_attention_heads": 3, "intermediate_size": 50},
    {"num_attention_heads": 1, "hidden_act": "relu"},
    {"type_vocab_size": 1, "max_position_embeddings": 17},
    {"layer_norm_eps": 1e-5, "num_hidden_layers": 3},
]
ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu-tanh", "relu": "relu"}


def models(changes: dict[str, Any], kind: str) -> tuple[Any, Bert]:
    import transformers

    config = transformers.BertConfig(
        **{
            "vocab_size": VOCAB, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
            "intermediate_size": 64, "max_position_embeddings": 40, "num_labels": CLASSES, **changes,
        }
    )  # fmt: skip
    torch.manual_seed(1)
    theirs = getattr(transformers, kind)(config).eval()
    with torch.no_grad():
        for weight in theirs.parameters():
            weight.normal_(std=0.2)  # of biases and norms too, so that none is forgotten
    ours = Bert(
        vocab=VOCAB, classes={"BertForMaskedLM": None, "BertModel": 0}.get(kind, CLASSES),
        model_dim=config.hidden_size, num_heads=config.num_attention_heads, layers=config.num_hidden_layers,
        ff_dim=config.intermediate_size, activation=ACTIVATIONS[config.hidden_act], segments=config.type_vocab_size,
        pooling="first", max_length=config.max_position_embeddings, norm_epsilon=config.layer_norm_eps,
    ).eval()  # fmt: skip
    with torch.no_grad():
        for name, weight in ours.named_parameters():
            weight.copy_(published(theirs, name))
    return theirs, ours


def published(theirs: Any, name: str, gradient: bool = False) -> Tensor:
    """The published weight, or its gradient, of one of our weights."""
    table = dict(theirs.named_parameters())
    prefix = "bert." if any(key.startswith("bert.") for key in table) else ""

    def read(key: str) -> Tensor:
        weight = table[key if key in table else key.removeprefix("bert.")]
        return weight.grad if gradient else weight

    if name in EMBEDDINGS:
        return read(prefix + EMBEDDINGS[name])
    if name in HEADS:
        return read(HEADS[name])
    _, _, number, part = name.split(".", 3)
    layer = f"{prefix}encoder.layer.{number}."
    if part.startswith("self_attention.query_key_value"):
        kind = part.rpartition(".")[2]
        return torch.cat([read(f"{layer}attention.self.{one}.{kind}") for one in ("query", "key", "value")])
    ours, _, kind = part.rpartition(".")
    return read(f"{layer}{LAYER[ours]}.{kind}")


def inputs(segments: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    torch.manual_seed(2)
    ids, lengths = torch.randint(4, VOCAB, (3, 17)), torch.tensor([17, 9, 1])
    types = (torch.arange(17) > 6).long().expand(3, -1) * (segments > 1)
    return ids, lengths, types, (torch.arange(17) < lengths[:, None]).long()


@pytest.mark.parametrize("kind", ["BertForMaskedLM", "BertForSequenceClassification", "BertModel"])
@pytest.mark.parametrize("changes", CONFIGURATIONS, ids=lambda changes: ",".join(changes) or "plain")
def test_outputs_and_gradients_are_those_of_transformers(changes: dict[str, Any], kind: str) -> None:
    theirs, ours = models(changes, kind)
    ids, lengths, types, mask = inputs(theirs.config.type_vocab_size)
    result = theirs(ids, attention_mask=mask, token_type_ids=types)
    if kind == "BertModel":
        expected, found = result.last_hidden_state, ours.encode(ids, lengths, types)
        pooled = ours.pooler(found[:, 0])  # type: ignore[misc]
        assert_close(pooled, result.pooler_output, atol=1e-5, rtol=1e-5)
    else:
        expected, found = result.logits, ours(ids, lengths, types)
    if expected.dim() == 3:  # padding answers nothing
        expected, found = expected[mask.bool()], found[mask.bool()]
    assert_close(found, expected, atol=1e-5, rtol=1e-5)

    weights = torch.randn_like(expected)
    (expected * weights).sum().backward()
    (found * weights).sum().backward()
    for name, weight in ours.named_parameters():
        if not weight.requires_grad:
            continue
        wanted = published(theirs, name, gradient=True)
        assert weight.grad is not None, name
        if name.endswith("query_key_value.bias"):  # that of keys is not trained: softmax cancels it
            parts = [gradient.chunk(3)[::2] for gradient in (weight.grad, wanted)]
            pairs = list(zip(*parts, strict=True))
        else:
            pairs = [(weight.grad, wanted)]
        for own, other in pairs:
            assert_close(own, other, atol=1e-5 * float(other.abs().max().clamp(min=1)), rtol=1e-4)


def test_the_loss_is_that_of_transformers() -> None:
    from headwise.data.batch import Batch
    from headwise.losses import batch_loss

    theirs, ours = models({}, "BertForMaskedLM")
    ids, lengths, types, mask = inputs(2)
    targets = torch.where((torch.arange(17) % 3 == 0) & mask.bool(), ids, 0)
    found = batch_loss(ours, Batch.of((ids, lengths, types), targets))
    labels = targets.masked_fill(targets == 0, -100)
    expected = theirs(ids, attention_mask=mask, token_type_ids=types, labels=labels).loss
    assert_close(found.total / found.count, expected, atol=1e-5, rtol=1e-5)

    theirs, ours = models({}, "BertForSequenceClassification")
    labels = torch.tensor([0, 4, 2])
    found = batch_loss(ours, Batch.of((ids, lengths, types), labels, ignore=-1))
    expected = theirs(ids, attention_mask=mask, token_type_ids=types, labels=labels).loss
    assert_close(found.total / found.count, expected, atol=1e-5, rtol=1e-5)
