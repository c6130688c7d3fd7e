from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from headwise.errors import ShapeError
from headwise.nn.recurrent import RecurrentEncoder, RecurrentLayer, reversal


def test_reversal_turns_tokens_round_and_leaves_padding_where_it_is() -> None:
    assert reversal(torch.tensor([4, 2, 1]), 4).tolist() == [[3, 2, 1, 0], [1, 0, 2, 3], [0, 1, 2, 3]]


def test_the_input_of_a_step_can_be_projected_in_two_parts() -> None:
    layer = RecurrentLayer("lstm", 7, 5)
    x = torch.randn(3, 7)
    assert_close(layer.project(x[:, :4]) + layer.project_rest(x[:, 4:]), layer.project(x))


def test_an_lstm_begins_with_open_forget_gates() -> None:
    layer = RecurrentLayer("lstm", 3, 4)
    assert layer.weights.bias_ih_l0[4:8].tolist() == [1.0] * 4


@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_padding_and_neighbours_do_not_change_what_the_encoder_says(cell: str, bidirectional: bool) -> None:
    torch.manual_seed(1)
    encoder = RecurrentEncoder(cell, 4, 6, 2, bidirectional, 0.0).eval()
    x, lengths = torch.randn(3, 8, 4), torch.tensor([8, 3, 5])
    states, ends = encoder(x, lengths)
    for row, length in enumerate(lengths.tolist()):
        alone, end = encoder(x[row : row + 1, :length], lengths[row : row + 1])
        assert_close(states[row : row + 1, :length], alone)
        assert_close(ends[row : row + 1], end)


def test_one_direction_reads_only_what_is_before() -> None:
    encoder = RecurrentEncoder("gru", 4, 6, 1, False, 0.0)
    x = torch.randn(1, 5, 4, requires_grad=True)
    (slope,) = torch.autograd.grad(encoder(x, torch.tensor([5]))[0][0, 2].sum(), x)
    assert (slope[0].abs().amax(dim=-1) > 0).tolist() == [True, True, True, False, False]


def test_mistakes_are_one_clear_line() -> None:
    with pytest.raises(ShapeError, match="cell must be one of lstm, gru, not 'rnn'"):
        RecurrentLayer("rnn", 3, 4)
    with pytest.raises(ShapeError, match=r"hidden_dim \(5\) must be even"):
        RecurrentEncoder("gru", 3, 5, 1, True, 0.0)
