from __future__ import annotations

import torch

import headwise as hw
from headwise.nn import MultiHeadAttention, causal_mask, scaled_dot_product_attention
from headwise.nn.observer import capture_attention


def test_capture_shows_the_weights_used_and_changes_no_bit_of_the_output() -> None:
    torch.manual_seed(0)
    model = hw.Transformer(
        source_vocab=20, model_dim=16, num_heads=4, encoder_layers=2, decoder_layers=2, ff_dim=32
    ).eval()
    source, target, lengths = torch.randint(0, 20, (2, 6)), torch.randint(0, 20, (2, 4)), torch.tensor([6, 3])
    plain = model(source, target, lengths)
    with capture_attention(model) as captured:
        observed = model(source, target, lengths)
    assert torch.equal(plain, observed)
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


def test_captured_weights_are_those_of_scores_with_their_bias_and_scale() -> None:
    torch.manual_seed(0)
    attention, x, bias = (
        MultiHeadAttention(8, 2, head_dim=3, scale=0.7).eval(),
        torch.randn(2, 5, 8),
        torch.randn(2, 5, 5),
    )
    with capture_attention(attention) as captured:
        output = attention(x, x, x, bias=bias, causal=True)
    (weights,) = captured[""]
    query, key, value = attention.project(x, x, x)
    _, expected = scaled_dot_product_attention(query, key, value, causal_mask(5), bias=bias, scale=0.7)
    torch.testing.assert_close(weights, expected)
    torch.testing.assert_close(output, attention.output((weights @ value).transpose(1, 2).flatten(2)))


def test_only_the_selected_attentions_are_captured() -> None:
    model = hw.LanguageModel(vocab=9, model_dim=8, num_heads=2, layers=3, ff_dim=8).eval()
    with capture_attention(model, lambda name: ".1." in name) as captured:
        model(torch.tensor([[4, 5]]))
    assert [(name, len(calls)) for name, calls in captured.items()] == [("stack.layers.1.self_attention", 1)]
