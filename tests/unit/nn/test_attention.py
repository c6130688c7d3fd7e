from __future__ import annotations

import pytest
import torch
from torch import nn

import headwise as hw
from headwise.errors import HeadwiseError
from headwise.nn import (
    AdditiveAttention,
    Dropout,
    Embedding,
    EncoderLayer,
    FeedForward,
    KeyValueCache,
    LayerSpec,
    LearnedPositions,
    MultiHeadAttention,
    Residual,
    RotaryPositions,
    SinusoidalPositions,
    capture_attention,
    causal_mask,
    fast_attention,
    padding_mask,
    scaled_dot_product_attention,
)
from headwise.nn.dropout import dropout
from headwise.nn.layers import Decoder, DecoderLayer, Encoder


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", ["none", "padding", "random", "empty rows"])
def test_fast_path_equals_the_equation_forward_and_backward(mask: str, causal: bool) -> None:
    torch.manual_seed(0)
    tensors = [torch.randn(3, 2, 6, 4) for _ in range(3)]
    allowed = {
        "none": None,
        "padding": padding_mask(torch.tensor([6, 3, 1]), 6)[:, None, None],
        "random": torch.rand(3, 1, 6, 6) < 0.5,
        "empty rows": padding_mask(torch.tensor([6, 0, 2]), 6)[:, None, None],
    }[mask]
    seen = causal_mask(6) if causal else torch.ones(6, 6, dtype=torch.bool)
    whole = seen if allowed is None else seen & allowed
    first = [t.clone().requires_grad_() for t in tensors]
    second = [t.clone().requires_grad_() for t in tensors]
    reference, weights = scaled_dot_product_attention(*first, whole)
    fast = fast_attention(*second, allowed, causal=causal)
    torch.testing.assert_close(fast, reference, atol=1e-5, rtol=1e-5)
    direction = torch.randn_like(fast)
    (reference * direction).sum().backward()
    (fast * direction).sum().backward()
    for a, b in zip(first, second, strict=True):
        torch.testing.assert_close(a.grad, b.grad, atol=1e-5, rtol=1e-5)
    assert torch.equal(weights[~whole.expand_as(weights)], torch.zeros(int((~whole.expand_as(weights)).sum())))


def test_a_row_that_may_attend_to_nothing_is_zero_and_has_finite_gradients() -> None:
    query = torch.randn(1, 2, 3, 4, requires_grad=True)
    nothing = torch.zeros(3, 3, dtype=torch.bool)
    for output in (
        scaled_dot_product_attention(query, query, query, nothing)[0],
        fast_attention(query, query, query, nothing),
        fast_attention(query, query, query, nothing, rate=0.5),
    ):
        assert torch.equal(output, torch.zeros_like(output))
        query.grad = None
        output.sum().backward()
        assert query.grad is not None
        assert torch.isfinite(query.grad).all()


def test_a_model_with_an_empty_source_gives_finite_logits_and_gradients() -> None:
    torch.manual_seed(0)
    model = hw.Transformer(source_vocab=11, model_dim=8, num_heads=2, encoder_layers=1, decoder_layers=1, ff_dim=16)
    logits = model(torch.ones(2, 3, dtype=torch.long), torch.ones(2, 2, dtype=torch.long), torch.tensor([3, 0]))
    logits.sum().backward()
    assert torch.isfinite(logits).all()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


def test_causal_attention_with_more_keys_than_queries_aligns_at_the_end() -> None:
    torch.manual_seed(0)
    query, key, value = torch.randn(1, 2, 2, 4), torch.randn(1, 2, 5, 4), torch.randn(1, 2, 5, 4)
    expected, _ = scaled_dot_product_attention(query, key, value, causal_mask(2, past=3))
    torch.testing.assert_close(fast_attention(query, key, value, causal=True), expected)


def test_dropout_on_attention_weights_keeps_the_mean() -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(1, 1, 4, 8) for _ in range(3))
    exact, _ = scaled_dot_product_attention(query, key, value)
    many = torch.stack([fast_attention(query, key, value, rate=0.3) for _ in range(4000)])
    assert not torch.equal(many[0], many[1])
    torch.testing.assert_close(many.mean(0), exact, atol=0.05, rtol=0.0)


def test_mask_shapes_of_two_three_and_four_axes_mean_the_same() -> None:
    torch.manual_seed(0)
    attention, x = MultiHeadAttention(8, 2).eval(), torch.randn(3, 5, 8)
    mask = causal_mask(5)
    expected = attention(x, x, x, mask)
    torch.testing.assert_close(attention(x, x, x, mask.expand(3, 5, 5)), expected)
    torch.testing.assert_close(attention(x, x, x, mask.expand(3, 2, 5, 5)), expected)
    torch.testing.assert_close(attention(x, x, x, causal=True), expected)


def test_capture_shows_the_weights_used_and_changes_no_bit_of_the_output() -> None:
    torch.manual_seed(0)
    model = hw.Transformer(
        source_vocab=20, model_dim=16, num_heads=4, encoder_layers=2, decoder_layers=2, ff_dim=32
    ).eval()
    source, target, lengths = torch.randint(0, 20, (2, 6)), torch.randint(0, 20, (2, 4)), torch.tensor([6, 3])
    plain = model(source, target, lengths)
    with capture_attention(model) as captured:
        watched = model(source, target, lengths)
    assert torch.equal(plain, watched)
    assert len(captured) == 6
    for name, (weights,) in captured.items():
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
        if "encoder" in name or "cross" in name:
            assert weights[1, :, :, 3:].abs().max() == 0
        else:
            assert weights[:, :, ~causal_mask(4)].abs().max() == 0
    cross = captured["decoder.layers.1.cross_attention"][0]
    assert cross.shape == (2, 4, 4, 6)
    assert all(m.observer is None for m in model.modules() if isinstance(m, MultiHeadAttention))


def test_captured_weights_times_values_are_the_output_of_the_head() -> None:
    torch.manual_seed(0)
    attention, x = MultiHeadAttention(8, 2).eval(), torch.randn(1, 5, 8)
    with capture_attention(attention) as captured:
        output = attention(x, x, x, causal=True)
    weights = captured[""][0]
    _, _, value = attention.project(x, x, x)
    by_hand = attention.output((weights @ value).transpose(1, 2).flatten(2))
    torch.testing.assert_close(output, by_hand)


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

    spec = LayerSpec(4, 2, 6, 0.0, 0.0, 0.0, "pre" if case == "pre" else "post", "gelu-tanh")
    checks = {
        "multi-head": lambda: gradcheck(Self(MultiHeadAttention(4, 2, rotary=RotaryPositions(2)), causal=True), x),
        "additive": lambda: gradcheck(AdditiveAttention(4, 4, 5), y, x, x),
        "feed-forward": lambda: gradcheck(FeedForward(4, 6, activation="silu"), x),
        "gelu": lambda: gradcheck(FeedForward(4, 6, activation="gelu"), x),
        "post": lambda: gradcheck(EncoderLayer(spec), x),
        "pre": lambda: gradcheck(EncoderLayer(spec), x),
        "encoder": lambda: gradcheck(Encoder(spec, 2), x),
        "decoder": lambda: gradcheck(Decoder(spec, 1), y, x),
        "residual": lambda: gradcheck(_Residual(spec), x),
        "learned": lambda: gradcheck(LearnedPositions(4, 5), x),
        "sinusoidal": lambda: gradcheck(SinusoidalPositions(4), x),
    }
    assert checks[case]()


class _Residual(nn.Module):
    def __init__(self, spec: LayerSpec) -> None:
        super().__init__()
        self.residual = Residual(spec.model_dim, 0.0, spec.norm)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.residual(x, torch.sin)


def test_gradcheck_of_attention_with_dropout_and_of_dropout_itself() -> None:
    x = torch.randn(1, 1, 3, 4, dtype=torch.float64, requires_grad=True)

    def fixed(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(5)  # the same draw at every evaluation
        return fast_attention(x, x * 0.5, x.cos(), causal=True, rate=0.4)

    def dropped(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(5)
        return Dropout(0.4)(x)

    assert torch.autograd.gradcheck(fixed, (x,))
    assert torch.autograd.gradcheck(dropped, (x,))


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.9])
def test_dropout_drops_at_its_rate_and_keeps_the_mean(rate: float) -> None:
    torch.manual_seed(0)
    layer = Dropout(rate)
    out = layer(torch.ones(1000, 1001))
    count = out.numel()
    deviation = (rate * (1 - rate) / count) ** 0.5
    assert abs((out == 0).double().mean().item() - rate) < 5 * deviation + 1e-5
    torch.testing.assert_close(out[out != 0].unique(), torch.tensor([1 / (1 - rate)]), atol=1e-4, rtol=1e-4)
    assert torch.equal(layer.eval()(out), out)


def test_dropout_draws_are_uniform_in_every_position_of_a_word() -> None:
    torch.manual_seed(0)
    kept = (Dropout(0.5)(torch.ones(4_000_000)) != 0).view(-1, 4).double().mean(0)
    assert (kept - 0.5).abs().max() < 5 * 0.5 / 1000  # a sign bit that is never set would give 1.0 or 0.0


def test_without_positions_permuting_the_input_permutes_the_output() -> None:
    torch.manual_seed(0)
    encoder, x, order = Encoder(LayerSpec(8, 2, 16), 2).eval(), torch.randn(2, 6, 8), torch.randperm(6)
    torch.testing.assert_close(encoder(x[:, order]), encoder(x)[:, order], atol=1e-5, rtol=1e-5)
    model = hw.Transformer(
        source_vocab=9, model_dim=8, num_heads=2, encoder_layers=1, decoder_layers=1, ff_dim=8, positions="none"
    ).eval()
    source, target = torch.randint(0, 9, (2, 6)), torch.randint(0, 9, (2, 3))
    torch.testing.assert_close(model(source[:, order], target), model(source, target), atol=1e-5, rtol=1e-5)


def test_rotary_scores_depend_on_the_distance_only() -> None:
    torch.manual_seed(0)
    rotary, q, k = RotaryPositions(8), torch.randn(1, 1, 1, 8), torch.randn(1, 1, 1, 8)
    score = {(i, j): (rotary.rotate(q, i) * rotary.rotate(k, j)).sum() for i, j in [(3, 1), (10, 8), (7, 7), (0, 0)]}
    torch.testing.assert_close(score[3, 1], score[10, 8])
    torch.testing.assert_close(score[7, 7], score[0, 0])


def test_sinusoidal_positions_grow_at_inference() -> None:
    positions = SinusoidalPositions(8, initial_length=4)
    out = positions(torch.zeros(1, 50, 8))
    torch.testing.assert_close(out[0], hw.nn.sinusoidal_positions(50, 8))
    torch.testing.assert_close(positions(torch.zeros(1, 3, 8), start=47)[0], out[0, 47:])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: MultiHeadAttention(10, 3), ["3", "10"]),
        (lambda: Embedding(5, 4)(torch.tensor([[1, 5]])), ["0…4", "5"]),
        (lambda: Embedding(5, 4)(torch.tensor([[-1]])), ["0…4", "-1"]),
        (lambda: Embedding(5, 4)(torch.tensor([[1.5]])), ["integers"]),
        (lambda: LearnedPositions(4, 3)(torch.zeros(1, 4, 4)), ["4", "3", "max_length"]),
        (lambda: MultiHeadAttention(8, 2)(*[torch.zeros(3, 8)] * 3), ["query", "(3, 8)"]),
        (
            lambda: MultiHeadAttention(8, 2)(torch.zeros(1, 2, 8), torch.zeros(1, 3, 8), torch.zeros(1, 4, 8)),
            ["3", "4"],
        ),
        (lambda: Dropout(1.0), ["1.0"]),
        (lambda: FeedForward(4, 4, activation="tanh"), ["tanh", "relu"]),
        (lambda: LayerSpec(4, 2, 4, norm="middle"), ["middle", "post"]),
        (lambda: RotaryPositions(3), ["even", "3"]),
        (lambda: hw.nn.sinusoidal_positions(4, 3), ["even", "3"]),
        (lambda: causal_mask(-1), ["-1"]),
        (lambda: padding_mask(torch.zeros(2, 2), 3), ["(2, 2)"]),
    ],
)
def test_bad_input_is_one_clear_line(make: object, words: list[str]) -> None:
    with pytest.raises(HeadwiseError) as caught:
        make()  # type: ignore[operator]
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in words), message


def test_cache_grows_and_follows_any_reorder() -> None:
    torch.manual_seed(0)
    cache = KeyValueCache(capacity=2)
    rows = torch.randn(3, 2, 9, 4)
    for t in range(5):
        key, value = cache.append(rows[:, :, t : t + 1], -rows[:, :, t : t + 1])
    torch.testing.assert_close(key, rows[:, :, :5])
    cache.reorder(torch.tensor([2, 2, 0, 1]))
    key, value = cache.append(rows[[2, 2, 0, 1], :, 5:9], -rows[[2, 2, 0, 1], :, 5:9])
    torch.testing.assert_close(key, rows[[2, 2, 0, 1]])
    torch.testing.assert_close(value, -rows[[2, 2, 0, 1]])


def test_decoder_layer_takes_its_query_from_the_decoder_and_key_and_value_from_the_encoder() -> None:
    torch.manual_seed(0)
    layer = DecoderLayer(LayerSpec(8, 2, 16)).eval()
    x, memory = torch.randn(1, 3, 8), torch.randn(1, 5, 8)
    with capture_attention(layer) as captured:
        layer(x, layer.cross_attention.keys_values(memory))
    assert captured["cross_attention"][0].shape == (1, 2, 3, 5)  # a row a target token, a column a source token


@pytest.mark.parametrize("mask", ["none", "padding", "empty rows", "causal"])
def test_attention_with_dropout_equals_its_parts_done_one_after_the_other(mask: str) -> None:
    torch.manual_seed(0)
    tensors = [torch.randn(3, 5, 2, 4).transpose(1, 2) for _ in range(3)]
    allowed = {
        "none": None,
        "padding": padding_mask(torch.tensor([5, 3, 1]), 5)[:, None, None],
        "empty rows": padding_mask(torch.tensor([5, 0, 2]), 5)[:, None, None],
        "causal": causal_mask(5),
    }[mask]
    first = [t.clone().requires_grad_() for t in tensors]
    second = [t.clone().requires_grad_() for t in tensors]
    torch.manual_seed(3)
    fast = fast_attention(*first, allowed, rate=0.4)
    torch.manual_seed(3)  # the same draw
    plain = dropout(scaled_dot_product_attention(*second, allowed)[1], 0.4) @ second[2]
    torch.testing.assert_close(fast, plain, atol=1e-6, rtol=1e-5)
    direction = torch.randn_like(fast)
    (fast * direction).sum().backward()
    (plain * direction).sum().backward()
    for a, b in zip(first, second, strict=True):
        torch.testing.assert_close(a.grad, b.grad, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("name", ["added", "after_relu"])
def test_dropout_with_its_neighbour_equals_the_two_one_after_the_other(name: str) -> None:
    torch.manual_seed(0)
    layer = Dropout(0.4)
    inputs = [torch.randn(3, 5, 8) for _ in range(2)]
    first, second = ([x.clone().requires_grad_() for x in inputs] for _ in range(2))
    torch.manual_seed(3)
    fused = layer.added(*first) if name == "added" else layer.after_relu(first[0])
    torch.manual_seed(3)  # the same draw
    plain = second[0] + layer(second[1]) if name == "added" else layer(second[0].relu())
    torch.testing.assert_close(fused, plain, atol=1e-6, rtol=1e-6)
    direction = torch.randn_like(fused)
    (fused * direction).sum().backward()
    (plain * direction).sum().backward()
    assert any(x.grad is not None for x in first)
    for a, b in zip(first, second, strict=True):
        torch.testing.assert_close(a.grad, b.grad, atol=1e-6, rtol=1e-6)
    layer.eval()
    evaluated = layer.added(*inputs) if name == "added" else layer.after_relu(inputs[0])
    torch.testing.assert_close(evaluated, inputs[0] + inputs[1] if name == "added" else inputs[0].relu())


@pytest.mark.parametrize("rotary", [False, True])
def test_the_bias_of_keys_learns_only_where_it_can_be_seen(rotary: bool) -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(8, 2, rotary=RotaryPositions(4) if rotary else None)
    x = torch.randn(2, 5, 8)
    attention(x, x, x, causal=True).square().sum().backward()
    query, key, value = attention.query_key_value.bias.grad.chunk(3)
    assert query.abs().max() > 1e-3
    assert value.abs().max() > 1e-3
    assert (key.abs().max() > 1e-3) == rotary
    assert rotary or not key.any(), "what Adam makes of rounding is a step of full size"
