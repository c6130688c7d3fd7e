from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from headwise.errors import ShapeError
from headwise.nn.feedforward import FeedForward, GatedFeedForward

ACTIVATIONS = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu-tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_feed_forward_network_is_equation_2_with_any_activation(activation: str, bias: bool) -> None:
    torch.manual_seed(0)
    network, x = FeedForward(4, 6, activation=activation, bias=bias), torch.randn(2, 3, 4)
    inner, outer = network.inner, network.outer
    if bias:
        torch.nn.init.normal_(inner.bias)
        torch.nn.init.normal_(outer.bias)
    first, second = (inner.bias, outer.bias) if bias else (0.0, 0.0)
    torch.testing.assert_close(
        network(x), ACTIVATIONS[activation](x @ inner.weight.T + first) @ outer.weight.T + second
    )


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_gated_network_multiplies_a_gate_with_a_linear_map_and_has_no_bias(activation: str) -> None:
    torch.manual_seed(0)
    network, x = GatedFeedForward(4, 6, activation=activation), torch.randn(2, 3, 4)
    gate, inner, outer = (linear.weight.T for linear in (network.gate, network.inner, network.outer))
    torch.testing.assert_close(network(x), (ACTIVATIONS[activation](x @ gate) * (x @ inner)) @ outer)
    assert {name for name, _ in network.named_parameters()} == {"gate.weight", "inner.weight", "outer.weight"}


@pytest.mark.parametrize("kind", [FeedForward, GatedFeedForward])
def test_dropout_is_inside_and_in_training_only(kind: type[FeedForward | GatedFeedForward]) -> None:
    torch.manual_seed(0)
    network, x = kind(4, 64, 0.5), torch.randn(1, 1, 4)
    assert not torch.equal(network(x), network(x))
    network.eval()
    assert torch.equal(network(x), network(x))


@pytest.mark.parametrize("kind", [FeedForward, GatedFeedForward])
def test_an_unknown_activation_is_one_clear_line(kind: type[FeedForward | GatedFeedForward]) -> None:
    with pytest.raises(ShapeError, match="unknown activation 'tanh'; choose one of relu, gelu"):
        kind(4, 4, activation="tanh")
