from __future__ import annotations

from threading import Barrier, Thread

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
        assert torch.equal(captured.allowed[name][0], weights > 0)
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


def test_two_threads_that_look_at_one_model_by_turns_each_capture_their_own() -> None:
    model = hw.LanguageModel(vocab=9, model_dim=8, num_heads=2, layers=3, ff_dim=8).eval()
    captured: dict[int, list[int]] = {}
    turns = Barrier(2)

    def look(length: int) -> None:
        with capture_attention(model) as found:
            turns.wait()
            model(torch.ones(1, length, dtype=torch.long))
            if length == 5:
                turns.wait()  # the other one has ended
        if length == 4:
            turns.wait()
        captured[length] = [weights.size(-1) for (weights,) in found.values()]

    threads = [Thread(target=look, args=(length,)) for length in (4, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert captured == {4: [4] * 3, 5: [5] * 3}
    assert all(m.observer is None for m in model.modules() if isinstance(m, MultiHeadAttention))


def test_a_look_goes_on_after_another_thread_has_ended_its_own() -> None:
    model = hw.LanguageModel(vocab=9, model_dim=8, num_heads=2, layers=2, ff_dim=8).eval()

    def other() -> None:
        with capture_attention(model) as found:
            model(torch.ones(1, 4, dtype=torch.long))
        assert all(found.values())

    with capture_attention(model) as found:
        thread = Thread(target=other)
        thread.start()
        thread.join()
        model(torch.ones(1, 3, dtype=torch.long))
    assert [len(weights) for weights in found.values()] == [1, 1]
