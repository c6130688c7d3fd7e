"""T5 computes what `transformers` computes with the same weights: versions 1.0 and 1.1, logits and gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from headwise.models.t5 import T5
from headwise.nn import relative_buckets

# Of `transformers`; the six stand for all that the two versions let one choose.
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "1.0": {},
    "1.0, wide heads": {"d_kv": 20, "num_heads": 3, "num_layers": 1},
    "1.0, few buckets": {"relative_attention_num_buckets": 8, "relative_attention_max_distance": 20},
    "1.1": {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
    "1.1, narrow heads": {
        "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "d_kv": 5, "num_decoder_layers": 3,
    },
    "1.1, silu": {"feed_forward_proj": "gated-silu", "tie_word_embeddings": False, "d_ff": 30},
}  # fmt: skip
VOCAB = 40


def random_pair(changes: dict[str, Any]) -> tuple[T5, Any]:
    """A random T5 of `transformers`, and ours with its weights."""
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(1)
    sizes = {"vocab_size": VOCAB, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, **changes}
    theirs = T5ForConditionalGeneration(T5Config(dropout_rate=0.0, **sizes))
    config = theirs.config
    if not config.scale_decoder_outputs:  # the library ties all, also what is published untied
        theirs.lm_head.weight = torch.nn.Parameter(torch.randn(VOCAB, config.d_model) * config.d_model**-0.5)
    with torch.no_grad():  # norms start at 1, which would hide a swap
        for parameter in theirs.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    activation = {"relu": "relu", "gelu_new": "gelu-tanh", "silu": "silu"}[config.dense_act_fn]
    ours = T5(
        vocab=VOCAB, model_dim=config.d_model, num_heads=config.num_heads, head_dim=config.d_kv, ff_dim=config.d_ff,
        encoder_layers=config.num_layers, decoder_layers=config.num_decoder_layers, gated=config.is_gated_act,
        activation=activation, tie="all" if config.scale_decoder_outputs else "none", dropout=0.0,
        buckets=config.relative_attention_num_buckets, max_distance=config.relative_attention_max_distance,
    )  # fmt: skip
    ours.load_state_dict(translated(dict(theirs.named_parameters()), ours))
    return ours, theirs


def translated(theirs: dict[str, Tensor], ours: T5) -> dict[str, Tensor]:
    """Their tensors (weights, or gradients) under our names."""
    tied = "lm_head.weight" not in theirs
    found = {"embedding.weight": theirs["shared.weight"]}
    found["output.weight"] = theirs["shared.weight" if tied else "lm_head.weight"]
    for stack, layers in (("encoder", ours.encoder.layers), ("decoder", ours.decoder.layers)):
        table = f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        found[f"{stack}_bias.weight"] = theirs[table]
        found[f"{stack}.norm.weight"] = theirs[f"{stack}.final_layer_norm.weight"]
        parts = [("self", "SelfAttention"), *([("cross", "EncDecAttention")] if stack == "decoder" else [])]
        for number in range(len(layers)):
            here, there = f"{stack}.layers.{number}", f"{stack}.block.{number}.layer"
            for place, (name, kind) in enumerate(parts):
                attention = f"{there}.{place}.{kind}"
                found[f"{here}.{name}_attention.query_key_value.weight"] = torch.cat(
                    [theirs[f"{attention}.{matrix}.weight"] for matrix in "qkv"]
                )
                found[f"{here}.{name}_attention.output.weight"] = theirs[f"{attention}.o.weight"]
                found[f"{here}.{name}_residual.norm.weight"] = theirs[f"{there}.{place}.layer_norm.weight"]
            dense = f"{there}.{len(parts)}.DenseReluDense"
            inner = {"gate": "wi_0", "inner": "wi_1"} if ours.settings.gated else {"inner": "wi"}
            for name, matrix in {**inner, "outer": "wo"}.items():
                found[f"{here}.feed_forward.{name}.weight"] = theirs[f"{dense}.{matrix}.weight"]
            found[f"{here}.feed_residual.norm.weight"] = theirs[f"{there}.{len(parts)}.layer_norm.weight"]
    return found


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_logits_and_gradients_are_those_of_transformers(name: str) -> None:
    ours, theirs = random_pair(CONFIGURATIONS[name])
    torch.manual_seed(2)
    source, target = torch.randint(2, VOCAB, (3, 40)), torch.randint(2, VOCAB, (3, 25))
    lengths = torch.tensor([40, 13, 29])
    target[:, 0] = 0  # their decoder starts with padding
    mask = torch.arange(40) < lengths[:, None]
    expected = theirs(input_ids=source, attention_mask=mask.long(), decoder_input_ids=target).logits
    found = ours(source, target, lengths)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    direction = torch.randn_like(expected) / expected.numel() ** 0.5
    (expected * direction).sum().backward()
    (found * direction).sum().backward()
    gradients = translated({name: p.grad for name, p in theirs.named_parameters() if p.grad is not None}, ours)
    for parameter_name, parameter in ours.named_parameters():
        torch.testing.assert_close(parameter.grad, gradients[parameter_name], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("two_sided", [True, False])
@pytest.mark.parametrize(("buckets", "max_distance"), [(32, 128), (32, 512), (8, 20), (16, 1000)])
def test_buckets_are_those_of_transformers_for_all_distances_up_to_2048(
    two_sided: bool, buckets: int, max_distance: int
) -> None:
    from transformers.models.t5.modeling_t5 import T5Attention

    distances = torch.arange(-2048, 2049)
    expected = T5Attention._relative_position_bucket(
        distances, bidirectional=two_sided, num_buckets=buckets, max_distance=max_distance
    )
    assert torch.equal(relative_buckets(distances, buckets, max_distance, two_sided), expected)
