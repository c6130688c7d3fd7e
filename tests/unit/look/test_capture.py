from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
import torch

from headwise.errors import UsageError
from headwise.look.capture import Look, look_at_text, look_at_translation
from headwise.look.encoder import look_at_input
from headwise.models.bigbird import BigBird
from headwise.models.lm import LanguageModel
from headwise.models.longformer import Longformer
from headwise.models.t5 import T5
from headwise.models.transformer import Transformer
from headwise.models.xl import TransformerXL
from headwise.nn import capture_attention
from headwise.text.tokenizer import BOS, EOS, TokenizerPair


@pytest.fixture(scope="module")
def reading(tokenizers: TokenizerPair) -> Look:
    torch.manual_seed(4)
    lm = LanguageModel(vocab=tokenizers.source.size, model_dim=32, num_heads=4, layers=2, ff_dim=48).eval()
    return look_at_text(lm, tokenizers.source, [EOS, *tokenizers.source.encode("the animal was tired")])


def test_shapes_are_those_of_the_layers_heads_and_tokens(seen: Look) -> None:
    assert seen.source is not None
    source, target = len(seen.source.tokens), len(seen.target.tokens)
    shapes = {kind: weights.shape for kind, weights in seen.attention.items()}
    assert shapes == {
        "encoder": (2, 4, source, source),
        "decoder": (3, 4, target, target),
        "cross": (3, 4, target, source),
    }
    assert seen.target.labels[0] == "⟨start⟩"
    assert seen.output.labels[-1] == seen.source.labels[-1] == "⟨end⟩"


def test_every_row_sums_to_one(seen: Look, reading: Look) -> None:
    for weights in (*seen.attention.values(), *reading.attention.values()):
        np.testing.assert_allclose(weights.sum(axis=-1), 1.0, atol=1e-5)


def test_masked_cells_are_exactly_zero(seen: Look, reading: Look) -> None:
    for weights in (seen.attention["decoder"], reading.attention["causal"]):
        later = np.triu(np.ones(weights.shape[-2:], dtype=bool), k=1)
        assert (weights[..., later] == 0).all()
        assert (weights[..., ~later] > 0).all()


def test_the_weights_are_those_that_decoding_step_by_step_uses(
    seen: Look, model: Transformer, tokenizers: TokenizerPair
) -> None:
    ids = tokenizers.source.encode("the animal was too tired")
    target = [BOS, *tokenizers.target.encode("两只狗 tired")]
    with torch.no_grad(), capture_attention(model) as captured:
        state = model.start((torch.tensor([[*ids, EOS]]),))
        for token in target:
            model.advance(state, torch.tensor([token]))
    for layer in range(3):
        crossing = captured[f"decoder.layers.{layer}.cross_attention"]
        for step in range(len(target)):
            weights = crossing[step][0, :, 0].numpy()
            np.testing.assert_allclose(seen.attention["cross"][layer, :, step], weights, atol=1e-5)
            own = captured[f"decoder.layers.{layer}.self_attention"][step][0, :, 0].numpy()
            np.testing.assert_allclose(seen.attention["decoder"][layer, :, step, : step + 1], own, atol=1e-5)


def test_asking_changes_neither_the_model_nor_its_output(model: Transformer, tokenizers: TokenizerPair) -> None:
    source, target = torch.tensor([[5, 6, EOS]]), torch.tensor([[BOS, 7]])
    with torch.no_grad():
        before = model(source, target)
    model.train()
    look = look_at_translation(model, tokenizers, [5, 6], [7])
    _ = look.saliency
    assert model.training
    model.eval()
    with torch.no_grad():
        assert torch.equal(model(source, target), before)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_looking_at_a_model_in_training_sees_no_dropout(model: Transformer, tokenizers: TokenizerPair) -> None:
    still = look_at_translation(model, tokenizers, [5, 6], [7])
    model.train()
    busy = look_at_translation(model, tokenizers, [5, 6], [7])
    model.eval()
    for kind, weights in still.attention.items():
        assert np.array_equal(weights, busy.attention[kind])


def test_chances_are_the_probabilities_of_what_was_written(
    seen: Look, model: Transformer, tokenizers: TokenizerPair
) -> None:
    source = torch.tensor([[*tokenizers.source.encode("the animal was too tired"), EOS]])
    ids = tokenizers.target.encode("两只狗 tired")
    with torch.no_grad():
        expected = model(source, torch.tensor([[BOS, *ids]]))[0].softmax(dim=-1)
    np.testing.assert_allclose(seen.steps.chances, expected[range(len(ids) + 1), [*ids, EOS]], rtol=1e-4)
    assert all(
        row[0][1] == pytest.approx(float(best))
        for row, best in zip(seen.steps.candidates, expected.max(-1)[0], strict=True)
    )


def test_merged_pieces_keep_rows_that_sum_to_one_and_what_is_masked(seen: Look) -> None:
    for panel in seen.panels("attention", merge_pieces=True):
        np.testing.assert_allclose(panel.values.sum(axis=-1), 1.0, atol=1e-5)
        assert panel.values.shape[-2:] == (len(panel.rows), len(panel.columns))
    encoder, decoder, _ = seen.panels("attention", merge_pieces=True)
    assert encoder.columns == ["the", "animal", "was", "too", "tired", "⟨end⟩"]
    later = np.triu(np.ones(decoder.values.shape[-2:], dtype=bool), k=1)
    assert (decoder.values[..., later] == 0).all()


def test_a_word_receives_the_sum_of_its_pieces(seen: Look) -> None:
    assert seen.source is not None
    merged = seen.panels("encoder", merge_pieces=True)[0]
    pieces = seen.source.groups[1]  # animal
    rows = seen.source.groups[0]
    expected = seen.attention["encoder"][1, 2][np.ix_(rows, pieces)].sum(axis=1).mean()
    assert merged.values[1, 2, 0, 1] == pytest.approx(expected, abs=1e-6)


def test_an_alignment_is_printed_in_moses_format(seen: Look) -> None:
    alignment = seen.alignment()
    links = [tuple(map(int, link.split("-"))) for link in str(alignment).split()]
    assert links == list(alignment.links)
    assert sorted(target for _, target in links) == list(range(len(alignment.target_words)))
    assert max(source for source, _ in links) < len(alignment.source_words) == 5
    assert "⟨end⟩" not in (*alignment.source_words, *alignment.target_words)


def test_another_layer_and_head_can_be_chosen_for_an_alignment(seen: Look) -> None:
    merged = seen.panels("cross", merge_pieces=True)[0].values
    assert np.array_equal(seen.alignment(1, 3).weights, merged[0, 2, :-1, :-1])
    np.testing.assert_allclose(seen.alignment().weights, merged[1].mean(axis=0)[:-1, :-1], atol=1e-7)


def test_positions_are_those_that_the_model_adds(seen: Look) -> None:
    assert seen.positions is not None
    np.testing.assert_allclose(seen.positions[3, :2], [np.sin(3), np.cos(3)], atol=1e-6)


def test_masks_show_who_may_attend_to_whom(seen: Look) -> None:
    encoder, decoder, cross = seen.panels("mask")
    assert (encoder.values == 1).all()
    assert (cross.values == 1).all()
    assert np.array_equal(decoder.values[0, 0], np.tril(np.ones_like(decoder.values[0, 0])))


def test_a_language_model_has_causal_attention_only(reading: Look) -> None:
    assert list(reading.attention) == ["causal"]
    assert reading.output.labels[:-1] == reading.target.labels[1:]
    with pytest.raises(UsageError, match="no alignment"):
        reading.alignment()
    with pytest.raises(UsageError, match="no cross-attention; it has causal"):
        reading.panels("cross")


def test_a_model_without_position_vectors_says_so(tokenizers: TokenizerPair) -> None:
    lm = LanguageModel(
        vocab=tokenizers.source.size, model_dim=32, num_heads=4, layers=1, ff_dim=48, positions="rotary"
    ).eval()
    xl = TransformerXL(vocab=tokenizers.source.size, model_dim=32, num_heads=4, layers=1, ff_dim=48)
    for model in (lm, xl):
        with pytest.raises(UsageError, match="its positions are rotary, distances between tokens, or none"):
            look_at_text(model, tokenizers.source, [EOS, 5]).panels("positions")


def test_an_empty_source_can_be_looked_at(model: Transformer, tokenizers: TokenizerPair) -> None:
    look = look_at_translation(model, tokenizers, [], [])
    assert look.attention["cross"].shape == (3, 4, 1, 1)
    assert str(look.alignment()) == ""


@pytest.mark.parametrize(
    ("name", "options", "problem"),
    [
        ("a.pdf", {}, "must end in .html, .svg or .png"),
        ("a", {}, "must end in .html, .svg or .png"),
        ("a.png", {"layer": 4}, "no layer 4: encoder self-attention has layers 1 to 2"),
        ("a.html", {"what": "cross", "head": 0}, "no head 0: cross-attention has heads 1 to 4"),
        ("a.html", {"what": "everything"}, "unknown picture 'everything'"),
    ],
)
def test_a_wrong_request_is_one_clear_line_and_writes_nothing(
    seen: Look, tmp_path: Path, name: str, options: dict[str, object], problem: str
) -> None:
    with pytest.raises(UsageError, match=problem):
        seen.save(tmp_path / name, **options)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_one_clear_line(seen: Look, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such folder"):
        seen.save(tmp_path / "nowhere" / "a.html")


# ---- positions as a bias on scores


@pytest.fixture(scope="module")
def biased(tokenizers: TokenizerPair) -> tuple[T5, Look]:
    torch.manual_seed(4)
    sizes = {"model_dim": 32, "num_heads": 4, "head_dim": 8, "encoder_layers": 2, "decoder_layers": 3, "ff_dim": 48}
    model = T5(vocab=tokenizers.source.size, **sizes).eval()
    for bias in (model.encoder_bias, model.decoder_bias):
        torch.nn.init.normal_(bias.weight)
    ids = tokenizers.source.encode("the animal was too tired"), tokenizers.target.encode("two dogs cross")
    return model, look_at_translation(model, tokenizers, *ids)


def test_the_position_bias_stands_beside_the_attention_that_it_is_a_part_of(biased: tuple[T5, Look]) -> None:
    model, look = biased
    names = [panel.name for panel in look.panels()]
    assert names == ["encoder", "encoder-bias", "decoder", "decoder-bias", "cross"]
    assert [panel.name for panel in look.panels("bias")] == ["encoder-bias", "decoder-bias"]
    assert [panel.name for panel in look.panels(merge_pieces=True)] == ["encoder", "decoder", "cross"]
    for panel in look.panels("bias"):
        assert panel.values.shape == look.attention[panel.name.removesuffix("-bias")].shape
    row = look.panels("bias")[1].values[2, 1, 2]  # the third step of the decoder
    assert row[:3].tolist() == pytest.approx([model.decoder_bias.weight[distance, 1].item() for distance in (2, 1, 0)])
    assert not row[3:].any()  # the future is hidden


def test_the_weights_that_are_shown_include_the_bias(biased: tuple[T5, Look]) -> None:
    model, _ = biased
    changed = copy.deepcopy(model)
    torch.nn.init.zeros_(changed.encoder_bias.weight)
    with capture_attention(changed) as captured, torch.no_grad():
        changed(torch.ones(1, 6, dtype=torch.long), torch.ones(1, 2, dtype=torch.long))
    plain = captured["encoder.layers.0.self_attention"][0]
    assert torch.allclose(plain, torch.full_like(plain, 1 / 6))  # equal tokens, no positions: nothing to choose by
    with capture_attention(model) as captured, torch.no_grad():
        model(torch.ones(1, 6, dtype=torch.long), torch.ones(1, 2, dtype=torch.long))
    weights = captured["encoder.layers.0.self_attention"][0]
    assert torch.allclose(weights, model.encoder_bias(6, 6).softmax(dim=-1), atol=1e-6)


def test_a_bias_is_drawn_on_pages_and_in_pictures(biased: tuple[T5, Look], tmp_path: Path) -> None:
    _, look = biased
    look.save(tmp_path / "attention.html", layer=2, head=3)
    assert "Encoder position bias" in (tmp_path / "attention.html").read_text(encoding="utf-8")
    look.save(tmp_path / "bias.svg", what="bias", layer=1, head=1)
    assert "Decoder position bias" in (tmp_path / "bias.svg").read_text(encoding="utf-8")


def test_a_model_without_a_bias_says_so(seen: Look) -> None:
    with pytest.raises(UsageError, match="adds no bias to its attention scores"):
        seen.panels("bias")


def test_a_pattern_shows_which_pairs_meet_in_each_head(reading: Look, tmp_path: Path) -> None:
    (panel,) = reading.panels("pattern")
    length = len(reading.target.tokens)
    assert panel.scale == "mask"
    assert panel.values.shape == (2, 4, length, length)
    assert (panel.values == np.tril(np.ones((length, length)))).all()
    reading.save(tmp_path / "pattern.html", "pattern")
    reading.save(tmp_path / "pattern.svg", "pattern", layer=1, head=2)
    assert "Patterns" in (tmp_path / "pattern.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def text(tokenizers: TokenizerPair) -> list[int]:
    return [BOS, *tokenizers.source.encode("the animal was too tired to cross the street"), EOS]


def test_a_mask_shows_the_window_that_all_layers_and_heads_share(tokenizers: TokenizerPair, text: list[int]) -> None:
    torch.manual_seed(4)
    sparse = Longformer(
        vocab=tokenizers.source.size, classes=2, model_dim=16, num_heads=2, layers=2, ff_dim=16, window=2, max_length=64
    )
    look = look_at_input(sparse, tokenizers.source, text)
    place = np.arange(len(text))
    band = (abs(place[:, None] - place) <= 1) | (place[:, None] == 0) | (place == 0)
    (mask,), (pattern,) = look.panels("mask"), look.panels("pattern")
    assert mask.values.shape[:2] == (1, 1)
    assert pattern.values.shape[:2] == (2, 2)
    assert (mask.values == band).all()
    assert (pattern.values == band).all()


def test_a_mask_shows_the_random_blocks_of_each_layer_and_head(tokenizers: TokenizerPair, text: list[int]) -> None:
    sparse = BigBird(
        vocab=tokenizers.source.size, classes=2, model_dim=16, num_heads=2, layers=2, ff_dim=16, block=1, random=2
    )
    (mask,) = look_at_input(sparse, tokenizers.source, text).panels("mask")
    length = len(text)
    for layer, values in zip(sparse.encoder.layers, mask.values, strict=True):
        assert (values == layer.self_attention.dense([length], length, False)[0].numpy()).all()  # type: ignore[operator, union-attr]


def test_a_weight_that_is_stored_as_zero_is_no_hole_in_a_pattern(tokenizers: TokenizerPair, text: list[int]) -> None:
    torch.manual_seed(4)
    sharp = LanguageModel(vocab=tokenizers.source.size, model_dim=32, num_heads=4, layers=2, ff_dim=48)
    for layer in sharp.stack.layers:
        torch.nn.init.normal_(layer.self_attention.query_key_value.weight, std=5.0)  # type: ignore[union-attr, arg-type]
    look = look_at_text(sharp, tokenizers.source, text)
    seen = np.tril(np.ones((len(text), len(text)), dtype=bool))
    assert (look.attention["causal"][..., seen] == 0).any()
    for what in ("mask", "pattern"):
        assert (look.panels(what)[0].values == seen).all()
