from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

import headwise as hw
from headwise.errors import HeadwiseError
from headwise.models.recurrent import RecurrentSeq2Seq
from headwise.nn import capture_attention

SIZES = {"model_dim": 16, "hidden_dim": 12, "encoder_layers": 1, "decoder_layers": 2}
ATTENTIONS = ("none", "additive", "dot", "general")


def test_the_public_name_is_this_model() -> None:
    assert hw.RecurrentSeq2Seq is RecurrentSeq2Seq


def test_logits_are_batch_first() -> None:
    model = hw.RecurrentSeq2Seq(source_vocab=11, target_vocab=13, tie="target", **SIZES)
    assert model(torch.zeros(2, 5, dtype=torch.long), torch.zeros(2, 4, dtype=torch.long)).shape == (2, 4, 13)


@pytest.mark.parametrize("tie", ["all", "target", "none"])
def test_tied_embeddings_are_one_matrix(tie: str) -> None:
    model = hw.RecurrentSeq2Seq(source_vocab=11, tie=tie, **SIZES)
    tables = {id(part.weight) for part in (model.source_embedding, model.target_embedding, model.output)}
    assert len(tables) == {"all": 1, "target": 2, "none": 3}[tie]


@pytest.mark.parametrize("feeding", [True, False])
@pytest.mark.parametrize("attention", ATTENTIONS)
@torch.inference_mode()
def test_what_is_looked_at_has_one_weight_per_target_and_source_token(attention: str, feeding: bool) -> None:
    torch.manual_seed(1)
    model = hw.RecurrentSeq2Seq(source_vocab=11, attention=attention, input_feeding=feeding, **SIZES).eval()
    source, target, lengths = torch.randint(4, 11, (2, 5)), torch.randint(4, 11, (2, 4)), torch.tensor([5, 3])
    plain = model(source, target, lengths)
    with capture_attention(model) as captured:
        assert_close(model(source, target, lengths), plain, rtol=0, atol=0)
    assert model.attention_names() == ({} if attention == "none" else {"cross": ["decoder.attention"]})
    for name in model.attention_names().get("cross", []):
        (weights,) = captured[name]
        assert weights.shape == (2, 1, 4, 5)
        assert_close(weights.sum(dim=-1), torch.ones(2, 1, 4))
        assert weights[1, :, :, 3:].eq(0).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((torch.zeros(5, dtype=torch.long), torch.zeros(1, 4, dtype=torch.long)), ["source", "(5,)"]),
        ((torch.zeros(2, 5, dtype=torch.long), torch.zeros(3, 4, dtype=torch.long)), ["2 sources", "3 targets"]),
        ((torch.full((1, 5), 99), torch.zeros(1, 4, dtype=torch.long)), ["0…10", "99"]),
        ((torch.zeros(1, 5, dtype=torch.long), torch.zeros(1, 4, dtype=torch.long), torch.tensor([6])), ["0…5", "6"]),
        ((torch.zeros(1, 0, dtype=torch.long), torch.zeros(1, 4, dtype=torch.long)), ["no token"]),
    ],
)
def test_wrong_ids_shapes_and_lengths_are_one_clear_line(arguments: tuple[torch.Tensor, ...], words: list[str]) -> None:
    model = hw.RecurrentSeq2Seq(source_vocab=11, **SIZES)
    with pytest.raises(HeadwiseError) as caught:
        model(*arguments)
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target_vocab": 12}, "tie='all' needs one shared vocabulary"),
        ({"hidden_dim": 13}, "must be even"),
        ({"num_heads": 2}, "unknown setting 'num_heads'"),
    ],
)
def test_a_wrong_architecture_is_one_clear_line(options: dict[str, int], words: str) -> None:
    with pytest.raises(HeadwiseError, match=words):
        hw.RecurrentSeq2Seq(source_vocab=11, **{**SIZES, **options})


def test_a_translation_needs_a_source() -> None:
    with pytest.raises(HeadwiseError, match="starts from a source"):
        hw.RecurrentSeq2Seq(source_vocab=11, **SIZES).start(None)


def test_generate_writes_what_the_whole_pass_finds_likeliest() -> None:
    torch.manual_seed(3)
    model = RecurrentSeq2Seq(source_vocab=11, model_dim=16, hidden_dim=16).eval()
    source, lengths = torch.randint(4, 11, (4, 5)), torch.tensor([5, 3, 2, 4])
    written = model.generate(source, 6, lengths)
    read = torch.cat([torch.full((4, 1), 2), written[:, :-1]], dim=1)
    likeliest = model(source, read, lengths).argmax(dim=-1)
    assert torch.equal(written[written != 0], likeliest[written != 0])
