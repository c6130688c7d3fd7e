"""Our recurrent layers compute what torch's cells compute, unrolled by hand, and torch's packed sequences."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.testing import assert_close

from headwise.models.recurrent import RecurrentSeq2Seq
from headwise.nn.recurrent import RecurrentEncoder, RecurrentLayer

CELLS = {"lstm": nn.LSTMCell, "gru": nn.GRUCell}
PARAMETERS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def torch_cell(layer: RecurrentLayer) -> nn.Module:
    cell = CELLS[layer.cell](layer.weights.input_size, layer.hidden_dim).double()
    with torch.no_grad():
        for name in PARAMETERS:
            getattr(cell, name).copy_(getattr(layer.weights, f"{name}_l0"))
    return cell


def advance(cell: nn.Module, x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    found = cell(x, state if isinstance(cell, nn.LSTMCell) else state[0])
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("cell", CELLS)
def test_whole_sequences_and_single_steps_are_torchs_cell_unrolled_with_its_gradients(cell: str) -> None:
    torch.manual_seed(1)
    layer = RecurrentLayer(cell, 5, 7).double()
    reference = torch_cell(layer)
    x = torch.randn(3, 6, 5, dtype=torch.float64, requires_grad=True)
    begin = tuple(torch.randn(3, 7, dtype=torch.float64) for _ in range(layer.parts))

    state, wanted, own, stepped = begin, [], begin, []
    for t in range(6):
        state = advance(reference, x[:, t], state)
        own = layer.step(layer.project(x[:, t]), own)
        wanted.append(state[0])
        stepped.append(own[0])
    expected = torch.stack(wanted, dim=1)
    slopes = torch.autograd.grad(expected.square().sum(), [x, *(getattr(reference, n) for n in PARAMETERS)])
    for found in (layer(x, begin), torch.stack(stepped, dim=1)):
        assert_close(found, expected, atol=1e-12, rtol=1e-12)
        own_slopes = torch.autograd.grad(
            found.square().sum(), [x, *(getattr(layer.weights, f"{n}_l0") for n in PARAMETERS)]
        )
        for ours, theirs in zip(own_slopes, slopes, strict=True):
            assert_close(ours, theirs, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("cell", CELLS)
@torch.inference_mode()
def test_the_encoder_is_torchs_bidirectional_stack_on_packed_sequences(cell: str) -> None:
    torch.manual_seed(2)
    encoder = RecurrentEncoder(cell, 5, 8, 2, True, 0.0).eval()
    reference = (nn.LSTM if cell == "lstm" else nn.GRU)(5, 4, 2, batch_first=True, bidirectional=True)
    for number in range(2):
        for layers, suffix in ((encoder.forwards, ""), (encoder.backwards, "_reverse")):
            for name in PARAMETERS:
                getattr(reference, f"{name}_l{number}{suffix}").copy_(getattr(layers[number].weights, f"{name}_l0"))
    x, lengths = torch.randn(4, 9, 5), torch.tensor([9, 1, 6, 4])
    packed, ends = reference(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
    expected = pad_packed_sequence(packed, batch_first=True)[0]
    states, last = encoder(x, lengths)
    for row, length in enumerate(lengths.tolist()):
        assert_close(states[row, :length], expected[row, :length])
    hidden = ends[0] if cell == "lstm" else ends
    assert_close(last, torch.cat((hidden[-2], hidden[-1]), dim=-1))


@pytest.mark.parametrize("attention", ["none", "additive", "dot", "general"])
@pytest.mark.parametrize("cell", CELLS)
def test_the_model_is_luongs_equations_written_out_with_torchs_cells(cell: str, attention: str) -> None:
    torch.manual_seed(3)
    model = RecurrentSeq2Seq(
        source_vocab=13, model_dim=6, hidden_dim=8, cell=cell, attention=attention, encoder_layers=1, decoder_layers=2,
        dropout=0.0,
    ).double()  # fmt: skip
    source, target = torch.randint(4, 13, (1, 5)), torch.randint(4, 13, (1, 4))
    embed = torch.nn.functional.embedding
    ahead, back = (torch_cell(layers[0]) for layers in (model.encoder.forwards, model.encoder.backwards))  # type: ignore[arg-type]

    def read(reader: nn.Module, words: Tensor) -> Tensor:
        state = tuple(torch.zeros(1, 4, dtype=torch.float64) for _ in range(1 + (cell == "lstm")))
        states = []
        for word in words:
            state = advance(reader, word[None], state)
            states.append(state[0])
        return torch.cat(states)  # (S, H / 2)

    words = embed(source[0], model.source_embedding.weight) * 6**0.5
    forwards, backwards = read(ahead, words), read(back, words.flip(0)).flip(0)
    memory = torch.cat((forwards, backwards), dim=-1)  # (S, H)
    first = model.decoder.bridge(torch.cat((forwards[-1:], backwards[:1]), dim=-1)).tanh().view(2, -1, 1, 8)
    states = [tuple(parts) for parts in first]
    vector, logits = torch.zeros(1, 6, dtype=torch.float64), []
    for word in embed(target[0], model.target_embedding.weight) * 6**0.5:
        x = word[None] if attention == "none" else torch.cat((word[None], vector), dim=-1)
        for number, layer in enumerate(model.decoder.layers):
            states[number] = advance(torch_cell(layer), x, states[number])  # type: ignore[arg-type]
            x = states[number][0]
        joined = x
        if attention != "none":
            score: nn.Module = model.decoder.attention.score  # type: ignore[union-attr, assignment]
            if attention == "additive":
                inner: nn.Module = score.additive  # type: ignore[assignment]
                scores = inner.score(torch.tanh(inner.query(x) + inner.key(memory)))[:, 0]  # type: ignore[operator]
            else:
                scores = (memory if attention == "dot" else memory @ score.key.weight.T) @ x[0]  # type: ignore[operator, union-attr]
            joined = torch.cat((x, scores.softmax(dim=0)[None] @ memory), dim=-1)
        vector = torch.tanh(model.decoder.combine(joined))
        logits.append(vector @ model.output.weight.T)
    assert_close(model(source, target)[0], torch.cat(logits), atol=1e-10, rtol=1e-10)
