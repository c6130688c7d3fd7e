from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

import headwise as hw
from headwise.errors import HeadwiseError, ShapeError
from headwise.models.bert import Bert
from headwise.models.inputs import segments_of
from headwise.nn import capture_attention

SIZES = {"model_dim": 16, "num_heads": 2, "layers": 2, "ff_dim": 24, "max_length": 20}


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(3)
    return torch.randint(4, 11, (3, 8)), torch.tensor([8, 5, 3])


def test_the_public_name_is_this_model() -> None:
    assert hw.Bert is Bert


@pytest.mark.parametrize(("classes", "shape"), [(None, (3, 8, 11)), (7, (3, 7)), (0, (3, 16))])
def test_the_number_of_classes_decides_the_output(classes: int | None, shape: tuple[int, ...]) -> None:
    ids, lengths = batch()
    assert hw.Bert(vocab=11, classes=classes, **SIZES)(ids, lengths).shape == shape


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize(("classes", "pooling"), [(None, "first"), (3, "first"), (3, "mean"), (0, "mean")])
@torch.inference_mode()
def test_padding_changes_nothing(classes: int | None, pooling: str, norm: str) -> None:
    ids, lengths = batch()
    model = hw.Bert(vocab=11, classes=classes, pooling=pooling, norm=norm, **SIZES).eval()
    together = model(ids, lengths)
    for row, length in enumerate(lengths.tolist()):
        alone = model(ids[row : row + 1, :length])[0]
        assert_close(together[row, :length] if classes is None else together[row], alone, atol=1e-5, rtol=1e-5)


@torch.inference_mode()
def test_every_token_sees_both_sides() -> None:
    ids, _ = batch()
    model = hw.Bert(vocab=11, **SIZES).eval()
    changed = ids.clone()
    changed[:, 4] = 10
    moved = (model(ids) - model(changed)).abs().amax(dim=(0, 2))
    assert (moved > 1e-4).all()


def test_an_end_of_sentence_begins_the_next_text() -> None:
    ids = torch.tensor([[2, 5, 6, 3, 7, 8, 3], [2, 5, 3, 0, 0, 0, 0]])
    assert segments_of(ids, 2).tolist() == [[0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1, 1]]
    assert segments_of(ids, 1).eq(0).all()
    model = hw.Bert(vocab=11, **SIZES).eval()
    with torch.inference_mode():
        assert torch.equal(model(ids), model(ids, None, segments_of(ids, 2)))
        assert not torch.equal(model(ids), model(ids, None, torch.zeros_like(ids)))


def test_the_output_shares_the_table_and_vectors_leave_the_pooler_alone() -> None:
    names = [name for name, _ in hw.Bert(vocab=11, **SIZES).named_parameters()]
    assert "output.dense.weight" in names
    assert not any("table" in name or "pooler" in name for name in names)
    model = hw.Bert(vocab=11, classes=0, **SIZES)
    model(*batch()).sum().backward()
    lacking = [name for name, weight in model.named_parameters() if weight.requires_grad and weight.grad is None]
    assert lacking == []
    assert not any(weight.requires_grad for weight in model.pooler.parameters())  # type: ignore[union-attr]


@torch.inference_mode()
def test_what_is_looked_at_are_the_weights_of_every_layer() -> None:
    ids, lengths = batch()
    model = hw.Bert(vocab=11, classes=2, **SIZES).eval()
    with capture_attention(model) as captured:
        model(ids, lengths)
    assert list(captured) == model.attention_names()["encoder"]
    for (weights,) in captured.values():
        assert weights.shape == (3, 2, 8, 8)
        assert weights[2, :, :, 3:].eq(0).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((torch.zeros(5, dtype=torch.long),), ["text", "(5,)"]),
        ((torch.zeros(1, 21, dtype=torch.long),), ["21 tokens", "20"]),
        ((torch.full((1, 5), 99),), ["0…10", "99"]),
        ((torch.zeros(1, 5, dtype=torch.long), torch.tensor([6])), ["0…5", "6"]),
    ],
)
def test_wrong_ids_shapes_and_lengths_are_one_clear_line(arguments: tuple[torch.Tensor, ...], words: list[str]) -> None:
    with pytest.raises(HeadwiseError) as caught:
        hw.Bert(vocab=11, **SIZES)(*arguments)
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_heads_that_do_not_divide_the_width_are_refused() -> None:
    with pytest.raises(ShapeError, match="must divide"):
        hw.Bert(vocab=11, **{**SIZES, "num_heads": 3})
