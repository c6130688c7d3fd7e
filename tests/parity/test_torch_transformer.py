"""Headwise computes what torch.nn computes, forward and backward, with the same weights."""

from __future__ import annotations

import random

import pytest
import torch
from torch import Tensor, nn

from headwise.nn import Decoder, Encoder, LayerMakers, MultiHeadAttention, causal_mask, padding_mask

TOLERANCE = {"atol": 1e-5, "rtol": 1e-5}


def configuration(seed: int) -> dict[str, int]:
    draw = random.Random(seed)
    heads = draw.choice([1, 2, 4])
    return {
        "num_heads": heads, "model_dim": heads * draw.choice([4, 8, 10]), "ff_dim": draw.choice([16, 33, 64]),
        "encoder_layers": draw.randint(1, 3), "decoder_layers": draw.randint(1, 3),
        "batch": draw.randint(1, 5), "source": draw.randint(1, 12), "target": draw.randint(1, 12),
    }  # fmt: skip


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    theirs.in_proj_weight.copy_(ours.query_key_value.weight)
    theirs.in_proj_bias.copy_(ours.query_key_value.bias)
    theirs.out_proj.load_state_dict(ours.output.state_dict())


def copy_common(ours: nn.Module, theirs: nn.Module) -> None:
    copy_attention(ours.self_attention, theirs.self_attn)
    theirs.linear1.load_state_dict(ours.feed_forward.inner.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.outer.state_dict())
    theirs.norm1.load_state_dict(ours.self_residual.norm.state_dict())


@torch.no_grad()
def twins(sizes: dict[str, int], norm: str) -> tuple[Encoder, Decoder, nn.Transformer]:
    make = LayerMakers.standard(sizes["model_dim"], sizes["num_heads"], sizes["ff_dim"], 0.0, norm=norm)
    encoder = Encoder(make, sizes["encoder_layers"], final_norm=True)
    decoder = Decoder(make, sizes["decoder_layers"], final_norm=True)
    for parameter in [*encoder.parameters(), *decoder.parameters()]:
        if parameter.dim() == 1:  # biases and norms start at constants, which would hide a swap
            parameter.add_(torch.randn_like(parameter) * 0.1)
    theirs = nn.Transformer(
        sizes["model_dim"], sizes["num_heads"], sizes["encoder_layers"], sizes["decoder_layers"], sizes["ff_dim"],
        dropout=0.0, batch_first=True, norm_first=norm == "pre",
    )  # fmt: skip
    for our, their in zip(encoder.layers, theirs.encoder.layers, strict=True):
        copy_common(our, their)
        their.norm2.load_state_dict(our.feed_residual.norm.state_dict())
    for our, their in zip(decoder.layers, theirs.decoder.layers, strict=True):
        copy_common(our, their)
        copy_attention(our.cross_attention, their.multihead_attn)
        their.norm2.load_state_dict(our.cross_residual.norm.state_dict())
        their.norm3.load_state_dict(our.feed_residual.norm.state_dict())
    theirs.encoder.norm.load_state_dict(encoder.norm.state_dict())
    theirs.decoder.norm.load_state_dict(decoder.norm.state_dict())
    return encoder, decoder, theirs


def gradients(module: nn.Module, first: str) -> Tensor:
    layers = module.layers[0]
    attention = layers.self_attention.query_key_value if first == "ours" else layers.self_attn
    return attention.weight.grad if first == "ours" else attention.in_proj_weight.grad


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("seed", range(10))
def test_encoder_and_decoder_equal_torch_forward_and_backward(seed: int, norm: str) -> None:
    torch.manual_seed(seed)
    sizes = configuration(seed)
    encoder, decoder, theirs = twins(sizes, norm)
    source = torch.randn(sizes["batch"], sizes["source"], sizes["model_dim"])
    target = torch.randn(sizes["batch"], sizes["target"], sizes["model_dim"])
    lengths = torch.randint(1, sizes["source"] + 1, (sizes["batch"],))
    seen = padding_mask(lengths, sizes["source"])
    s1, t1, s2, t2 = (x.clone().requires_grad_() for x in (source, target, source, target))

    memory = encoder(s1, seen[:, None, None, :])
    ours = decoder(t1, memory, seen[:, None, None, :])
    hidden = ~causal_mask(sizes["target"])
    their_memory = theirs.encoder(s2, src_key_padding_mask=~seen)
    other = theirs.decoder(t2, their_memory, tgt_mask=hidden, memory_key_padding_mask=~seen)

    # Torch zeroes or leaves what stands at padding; neither is ever read, so tokens are what counts.
    torch.testing.assert_close(memory[seen], their_memory[seen], **TOLERANCE)
    torch.testing.assert_close(ours, other, **TOLERANCE)
    direction = torch.randn_like(ours)
    (ours * direction).sum().backward()
    (other * direction).sum().backward()
    torch.testing.assert_close(s1.grad[seen], s2.grad[seen], **TOLERANCE)
    torch.testing.assert_close(t1.grad, t2.grad, **TOLERANCE)
    for our, their in ((encoder, theirs.encoder), (decoder, theirs.decoder)):
        torch.testing.assert_close(gradients(our, "ours"), gradients(their, "theirs"), **TOLERANCE)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_decoder_alone_equals_torch(norm: str) -> None:
    torch.manual_seed(3)
    _, decoder, theirs = twins(configuration(3), norm)
    dim = configuration(3)["model_dim"]
    target, memory = torch.randn(2, 7, dim), torch.randn(2, 5, dim)
    other = theirs.decoder(target, memory, tgt_mask=~causal_mask(7))
    torch.testing.assert_close(decoder(target, memory), other, **TOLERANCE)


def test_paper_has_no_final_norm_and_torch_layers_without_one_agree() -> None:
    torch.manual_seed(4)
    encoder, _, theirs = twins(configuration(4), "post")
    encoder.norm, theirs.encoder.norm = nn.Identity(), None
    x = torch.randn(2, 6, configuration(4)["model_dim"])
    torch.testing.assert_close(encoder(x), theirs.encoder(x), **TOLERANCE)
    assert isinstance(Encoder(LayerMakers.standard(8, 2, 16), 1).norm, nn.Identity)


@pytest.mark.parametrize("seed", range(5))
def test_multi_head_attention_equals_torch(seed: int) -> None:
    torch.manual_seed(seed)
    ours, theirs = MultiHeadAttention(24, 4), nn.MultiheadAttention(24, 4, batch_first=True)
    with torch.no_grad():
        ours.query_key_value.bias.normal_()
        copy_attention(ours, theirs)
    query, key, value = torch.randn(3, 5, 24), torch.randn(3, 7, 24), torch.randn(3, 7, 24)
    allowed = torch.rand(5, 7) < 0.6
    allowed[:, 0] = True
    other, _ = theirs(query, key, value, attn_mask=~allowed)
    torch.testing.assert_close(ours(query, key, value, allowed), other, **TOLERANCE)
    same, _ = theirs(query, query, query)
    torch.testing.assert_close(ours(query, query, query), same, **TOLERANCE)
