from __future__ import annotations

import pytest
import torch

import headwise as hw
from headwise.errors import HeadwiseError

SIZES = {"model_dim": 16, "num_heads": 2, "encoder_layers": 1, "decoder_layers": 1, "ff_dim": 32}


def test_logits_are_batch_first() -> None:
    model = hw.Transformer(source_vocab=11, target_vocab=13, tie="target", **SIZES)
    assert model(torch.zeros(2, 5, dtype=torch.long), torch.zeros(2, 4, dtype=torch.long)).shape == (2, 4, 13)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((torch.zeros(5, dtype=torch.long), torch.zeros(1, 4, dtype=torch.long)), ["source", "(5,)"]),
        ((torch.zeros(1, 5, dtype=torch.long), torch.zeros(4, dtype=torch.long)), ["target", "(4,)"]),
        ((torch.zeros(2, 5, dtype=torch.long), torch.zeros(3, 4, dtype=torch.long)), ["2 sources", "3 targets"]),
        ((torch.full((1, 5), 99), torch.zeros(1, 4, dtype=torch.long)), ["0…10", "99"]),
        ((torch.zeros(1, 5, dtype=torch.long), torch.zeros(1, 4, dtype=torch.long), torch.tensor([6])), ["0…5", "6"]),
        (
            (torch.zeros(1, 5, dtype=torch.long), torch.zeros(1, 4, dtype=torch.long), torch.tensor([1, 2])),
            ["source lengths"],
        ),
        ((torch.zeros(1, 5, dtype=torch.long), torch.zeros(1, 4, dtype=torch.long), None, torch.tensor([5])), ["0…4"]),
    ],
)
def test_wrong_ids_shapes_and_lengths_are_one_clear_line(arguments: tuple[torch.Tensor, ...], words: list[str]) -> None:
    model = hw.Transformer(source_vocab=11, **SIZES)
    with pytest.raises(HeadwiseError) as caught:
        model(*arguments)
    assert "\n" not in str(caught.value)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"tie": "some"},
        {"positions": "alphabetical"},
        {"positions": "rotary"},
        {"source_vocab": 5, "target_vocab": 6},
        {"num_heads": 3},
        {"norm": "no"},
    ],
)
def test_impossible_architectures_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(HeadwiseError):
        hw.Transformer(**{"source_vocab": 11, **SIZES, **options})  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_runs_in_the_dtype_it_is_moved_to(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model = hw.Transformer(source_vocab=11, **SIZES).to(dtype)
    ids = torch.randint(0, 11, (2, 5))
    # oneDNN dies of an illegal instruction where a processor tells of AMX and the virtual machine does not give it.
    with torch.backends.mkldnn.flags(enabled=False):
        assert model(ids, ids, torch.tensor([5, 3])).dtype == dtype
        model(ids, ids).sum().backward()
        model.eval()
        state = model.start((ids, torch.tensor([5, 3])))
        assert model.output.logits(model.advance(state, ids[:, 0])).dtype == dtype


def test_runs_on_the_meta_device() -> None:
    model = hw.Transformer(source_vocab=11, **SIZES).to("meta")
    ids = torch.zeros(2, 5, dtype=torch.long, device="meta")
    assert model(ids, ids).device.type == "meta"


def test_compiled_model_equals_the_plain_one_in_training_and_evaluation() -> None:
    torch.manual_seed(0)
    model = hw.Transformer(source_vocab=11, dropout=0.0, **SIZES)
    compiled = torch.compile(model, backend="aot_eager", dynamic=True, fullgraph=True)
    for length in (5, 8):
        ids = torch.randint(0, 11, (2, length))
        lengths = torch.tensor([length, 3])
        torch.testing.assert_close(compiled(ids, ids, lengths), model(ids, ids, lengths), atol=1e-5, rtol=1e-5)
        plain = torch.autograd.grad(model(ids, ids, lengths).square().sum(), model.output.weight)[0]
        other = torch.autograd.grad(compiled(ids, ids, lengths).square().sum(), model.output.weight)[0]
        torch.testing.assert_close(other, plain, atol=1e-4, rtol=1e-4)
    model.eval()
    torch.testing.assert_close(compiled(ids, ids), model(ids, ids), atol=1e-5, rtol=1e-5)


@pytest.mark.slow
def test_compiles_with_dropout_in_one_graph() -> None:
    model = hw.Transformer(source_vocab=11, dropout=0.2, **SIZES)
    ids = torch.randint(0, 11, (2, 5))
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    assert not torch.equal(compiled(ids, ids), compiled(ids, ids))


def test_exported_model_equals_the_plain_one_at_other_sizes() -> None:
    torch.manual_seed(0)
    model = hw.Transformer(source_vocab=11, **SIZES).eval()
    batch, source, target = (
        torch.export.Dim("batch", max=64),
        torch.export.Dim("source", max=64),
        torch.export.Dim("target", max=64),
    )
    example = (torch.randint(0, 11, (3, 5)), torch.randint(0, 11, (3, 4)), torch.tensor([5, 4, 2]))
    program = torch.export.export(
        model, example, dynamic_shapes={
            "source_ids": {0: batch, 1: source}, "target_ids": {0: batch, 1: target}, "source_lengths": {0: batch},
        },
    )  # fmt: skip
    other = (torch.randint(0, 11, (2, 9)), torch.randint(0, 11, (2, 7)), torch.tensor([9, 1]))
    torch.testing.assert_close(program.module()(*other), model(*other), atol=1e-5, rtol=1e-5)


def test_dropout_changes_training_and_not_evaluation() -> None:
    torch.manual_seed(0)
    model = hw.Transformer(source_vocab=11, dropout=0.3, **SIZES)
    ids = torch.randint(0, 11, (2, 5))
    assert not torch.equal(model(ids, ids), model(ids, ids))
    model.eval()
    assert torch.equal(model(ids, ids), model(ids, ids))


def test_the_same_seed_gives_the_same_dropout() -> None:
    model = hw.Transformer(source_vocab=11, dropout=0.3, **SIZES)
    ids = torch.randint(0, 11, (2, 5))
    torch.manual_seed(7)
    first = model(ids, ids)
    torch.manual_seed(7)
    assert torch.equal(model(ids, ids), first)


def test_a_model_with_an_empty_source_gives_finite_logits_and_gradients() -> None:
    torch.manual_seed(0)
    model = hw.Transformer(source_vocab=11, model_dim=8, num_heads=2, encoder_layers=1, decoder_layers=1, ff_dim=16)
    logits = model(torch.ones(2, 3, dtype=torch.long), torch.ones(2, 2, dtype=torch.long), torch.tensor([3, 0]))
    logits.sum().backward()
    assert torch.isfinite(logits).all()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


@pytest.mark.parametrize("with_lengths", [False, True])
def test_the_end_of_the_source_can_be_left_out(with_lengths: bool) -> None:
    torch.manual_seed(1)
    with_end = hw.Transformer(source_vocab=20, **SIZES).eval()
    without = hw.Transformer(source_vocab=20, **SIZES, source_end=False).eval()
    without.load_state_dict(with_end.state_dict())
    source, target = torch.randint(4, 20, (2, 5)), torch.randint(4, 20, (2, 3))
    ended = torch.cat((source, torch.full((2, 1), 3)), dim=1)
    lengths = torch.tensor([6, 6]) if with_lengths else None
    torch.testing.assert_close(without(ended, target, lengths), with_end(source, target))
    assert without(ended[:, -1:], target).isfinite().all()
