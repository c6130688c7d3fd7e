from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

import headwise as hw
from headwise.errors import ShapeError
from headwise.nn import (
    AdditiveAttention,
    FeedForward,
    GatedFeedForward,
    LearnedPositions,
    MultiHeadAttention,
    RotaryPositions,
    SinusoidalPositions,
    capture_attention,
)
from headwise.nn.layers import Decoder, DecoderLayer, Encoder, EncoderLayer, LayerMakers, Residual


def gradcheck(module: nn.Module, *inputs: torch.Tensor) -> bool:
    module = module.double().eval()
    names, parameters = zip(*module.named_parameters(), strict=True) if list(module.parameters()) else ((), ())

    def function(*values: torch.Tensor) -> torch.Tensor:
        weights = dict(zip(names, values[len(inputs) :], strict=True))
        out = torch.func.functional_call(module, weights, values[: len(inputs)])
        return out[0] if isinstance(out, tuple) else out

    values = [v.double().requires_grad_() for v in inputs] + [p.detach().clone().requires_grad_() for p in parameters]
    return torch.autograd.gradcheck(function, values, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize(
    "case",
    [
        "multi-head",
        "additive",
        "feed-forward",
        "gelu",
        "gated",
        "post",
        "pre",
        "encoder",
        "decoder",
        "residual",
        "learned",
        "sinusoidal",
    ],
)
def test_gradients_are_those_of_finite_differences(case: str) -> None:
    torch.manual_seed(1)
    x, y = torch.randn(2, 3, 4), torch.randn(2, 2, 4)

    class Self(nn.Module):
        def __init__(self, inner: nn.Module, **options: object) -> None:
            super().__init__()
            self.inner, self.options = inner, options

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x, x, x, **self.options)

    make = LayerMakers.standard(4, 2, 6, 0.0, norm="pre" if case == "pre" else "post", activation="gelu-tanh")
    checks = {
        "multi-head": lambda: gradcheck(Self(MultiHeadAttention(4, 2, rotary=RotaryPositions(2)), causal=True), x),
        "additive": lambda: gradcheck(AdditiveAttention(4, 4, 5), y, x, x),
        "feed-forward": lambda: gradcheck(FeedForward(4, 6, activation="silu"), x),
        "gelu": lambda: gradcheck(FeedForward(4, 6, activation="gelu"), x),
        "gated": lambda: gradcheck(GatedFeedForward(4, 6), x),
        "post": lambda: gradcheck(EncoderLayer(make), x),
        "pre": lambda: gradcheck(EncoderLayer(make), x),
        "encoder": lambda: gradcheck(Encoder(make, 2), x),
        "decoder": lambda: gradcheck(Decoder(make, 1), y, x),
        "residual": lambda: gradcheck(_Residual(), x),
        "learned": lambda: gradcheck(LearnedPositions(4, 5), x),
        "sinusoidal": lambda: gradcheck(SinusoidalPositions(4), x),
    }
    assert checks[case]()


class _Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.residual = Residual(nn.LayerNorm(4), 0.0, norm_first=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.residual(x, torch.sin)


def test_without_positions_permuting_the_input_permutes_the_output() -> None:
    torch.manual_seed(0)
    encoder, x, order = Encoder(LayerMakers.standard(8, 2, 16), 2).eval(), torch.randn(2, 6, 8), torch.randperm(6)
    torch.testing.assert_close(encoder(x[:, order]), encoder(x)[:, order], atol=1e-5, rtol=1e-5)
    model = hw.Transformer(
        source_vocab=9, model_dim=8, num_heads=2, encoder_layers=1, decoder_layers=1, ff_dim=8, positions="none"
    ).eval()
    source, target = torch.randint(0, 9, (2, 6)), torch.randint(0, 9, (2, 3))
    torch.testing.assert_close(model(source[:, order], target), model(source, target), atol=1e-5, rtol=1e-5)


def test_decoder_layer_takes_its_query_from_the_decoder_and_key_and_value_from_the_encoder() -> None:
    torch.manual_seed(0)
    layer = DecoderLayer(LayerMakers.standard(8, 2, 16)).eval()
    x, memory = torch.randn(1, 3, 8), torch.randn(1, 5, 8)
    with capture_attention(layer) as captured:
        layer(x, layer.cross_attention.heads(memory, 1, 3))
    assert captured["cross_attention"][0].shape == (1, 2, 3, 5)  # a row per target token, a column per source token


def test_a_stack_takes_whatever_parts_its_makers_make() -> None:
    """Another norm, a gated feed-forward network, heads of another size: no layer knows."""
    torch.manual_seed(0)
    make = LayerMakers(
        attention=lambda: MultiHeadAttention(8, 2, bias=False, head_dim=3, scale=1.0),
        cross_attention=lambda: MultiHeadAttention(8, 2, bias=False, head_dim=3, scale=1.0),
        feed_forward=lambda: GatedFeedForward(8, 12),
        norm=lambda: nn.RMSNorm(8),
        norm_first=True,
    )
    x, memory, bias = torch.randn(2, 4, 8), torch.randn(2, 5, 8), torch.randn(2, 4, 4)
    encoder, decoder = Encoder(make, 2), Decoder(make, 2)
    assert [type(module) for module in encoder.modules()].count(nn.RMSNorm) == 5  # two per layer, and the last
    layer = encoder.layers[0]
    y = layer.self_residual.norm(x)
    y = x + layer.self_attention(y, y, y, bias=bias)
    y = y + layer.feed_forward(layer.feed_residual.norm(y))
    torch.testing.assert_close(layer(x, bias=bias), y)
    assert decoder(x, memory, bias=bias).shape == (2, 4, 8)
    assert not torch.equal(decoder(x, memory, bias=bias), decoder(x, memory))


def test_every_layer_of_a_stack_gets_the_bias() -> None:
    torch.manual_seed(0)
    encoder = Encoder(LayerMakers.standard(8, 2, 16), 2).eval()
    x, hidden = torch.randn(1, 4, 8), torch.zeros(4, 4)
    hidden[:, 3] = -torch.inf  # the last token is not seen by others
    with capture_attention(encoder) as captured:
        encoder(x, bias=hidden)
    assert all(weights[..., 3].abs().max() == 0 for (weights,) in captured.values())


def test_makers_that_do_not_fit_are_one_clear_line() -> None:
    make = LayerMakers.standard(8, 2, 16)
    with pytest.raises(ShapeError, match="a decoder layer needs cross-attention"):
        DecoderLayer(replace(make, cross_attention=None))
    with pytest.raises(ShapeError, match=r"norm must be 'post'.*not 'middle'"):
        LayerMakers.standard(4, 2, 4, norm="middle")


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_a_stack_that_computes_only_the_first_rows_of_its_last_layer_gives_the_same_rows(norm: str) -> None:
    stack = Encoder(LayerMakers.standard(8, 2, 16, norm=norm), 3).eval()
    x, allowed = torch.randn(2, 5, 8), torch.tensor([[True, True, True, False, True]])
    torch.testing.assert_close(stack(x, allowed, rows=2), stack(x, allowed)[:, :2])
