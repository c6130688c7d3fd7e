"""Recurrent layers: a state that is passed along from word to word. What attention did without (section 1).

A layer's state is a tuple of tensors (B, H): (h, c) of an LSTM, (h,) of a GRU.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from headwise.errors import ShapeError
from headwise.nn.dropout import Dropout

LayerState = tuple[Tensor, ...]
_TORCH = {"lstm": nn.LSTM, "gru": nn.GRU}


class RecurrentLayer(nn.Module):
    """One layer of LSTM (Hochreiter & Schmidhuber 1997) or GRU (Cho et al. 2014), with the weights of torch's own.

    `forward` reads whole sequences by torch's kernel; `step` goes on by one token per row, where its input is not known
    before. Both compute the same.
    """

    def __init__(self, cell: str, input_dim: int, hidden_dim: int) -> None:
        super().__init__()
        if cell not in _TORCH:
            raise ShapeError(f"cell must be one of {', '.join(_TORCH)}, not '{cell}'")
        self.cell, self.hidden_dim = cell, hidden_dim
        self.parts = 2 if cell == "lstm" else 1  # tensors of a state
        self.weights: Any = _TORCH[cell](input_dim, hidden_dim, batch_first=True)
        if cell == "lstm":  # a forget gate that is open at first lets gradients through (Jozefowicz et al. 2015)
            nn.init.ones_(self.weights.bias_ih_l0.data[hidden_dim : 2 * hidden_dim])

    def forward(self, x: Tensor, state: LayerState | None = None) -> Tensor:
        """(B, T, input) -> h after every token, (B, T, H). Without `state` it begins with zeros."""
        before = None if state is None else tuple(part[None] for part in state)
        out: Tensor = self.weights(x, before if before is None or self.cell == "lstm" else before[0])[0]
        return out

    def project(self, x: Tensor) -> Tensor:
        """What the first columns of the input, as many as x has, add to all gates: (…, part of input) -> (…, gates)."""
        return F.linear(x, self.weights.weight_ih_l0[:, : x.size(-1)], self.weights.bias_ih_l0)

    def project_rest(self, x: Tensor) -> Tensor:
        """The same for the last columns, without a bias: project(a) + project_rest(b) is that of [a; b]."""
        return F.linear(x, self.weights.weight_ih_l0[:, -x.size(-1) :])

    def step(self, projected: Tensor, state: LayerState) -> LayerState:
        """The state after one more token, whose input is `projected`, (B, gates)."""
        recurrent = F.linear(state[0], self.weights.weight_hh_l0, self.weights.bias_hh_l0)
        return (_lstm if self.cell == "lstm" else _gru)(projected, recurrent, state)


def _lstm(projected: Tensor, recurrent: Tensor, state: LayerState) -> LayerState:
    """c' = f ⊙ c + i ⊙ g, h' = o ⊙ tanh(c'): what to forget, to write and to show are gates between 0 and 1."""
    write, forget, candidate, show = (projected + recurrent).chunk(4, dim=-1)
    memory = forget.sigmoid() * state[1] + write.sigmoid() * candidate.tanh()
    return show.sigmoid() * memory.tanh(), memory


def _gru(projected: Tensor, recurrent: Tensor, state: LayerState) -> LayerState:
    """h' = (1 - z) ⊙ n + z ⊙ h, n = tanh(W x + r ⊙ U h): z keeps the old state, r lets the candidate see it."""
    (x_reset, x_keep, x_new), (h_reset, h_keep, h_new) = (y.chunk(3, dim=-1) for y in (projected, recurrent))
    candidate = (x_new + (x_reset + h_reset).sigmoid() * h_new).tanh()
    return (torch.lerp(candidate, state[0], (x_keep + h_keep).sigmoid()),)


class RecurrentEncoder(nn.Module):
    """A stack of recurrent layers, each reading in one direction or in both. Padding at the end of a row is not read.

    Forwards, padding comes after all tokens. Backwards, each row is turned round within its own length, so that padding
    stays behind. That takes half the time of packed sequences on a CPU.
    """

    def __init__(
        self, cell: str, input_dim: int, hidden_dim: int, num_layers: int, bidirectional: bool, dropout: float
    ) -> None:
        super().__init__()
        if bidirectional and hidden_dim % 2:
            raise ShapeError(f"hidden_dim ({hidden_dim}) must be even: two directions share it")
        width = hidden_dim // 2 if bidirectional else hidden_dim
        inputs = [input_dim] + [hidden_dim] * (num_layers - 1)
        self.forwards = nn.ModuleList(RecurrentLayer(cell, size, width) for size in inputs)
        self.backwards = nn.ModuleList(RecurrentLayer(cell, size, width) for size in inputs if bidirectional)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """(B, S, input), (B,) -> states of all tokens (B, S, H), and where each direction ended (B, H)."""
        turned = reversal(lengths, x.size(1))[:, :, None]  # (B, S, 1)
        last = (lengths - 1)[:, None, None]
        ends: list[Tensor] = []
        for number, ahead in enumerate(self.forwards):
            x = self.dropout(x) if number else x
            sides = [ahead(x)]
            ends = [sides[0].take_along_dim(last, dim=1)[:, 0]]
            if self.backwards:
                sides.append(self.backwards[number](x.take_along_dim(turned, dim=1)).take_along_dim(turned, dim=1))
                ends.append(sides[1][:, 0])
            x = torch.cat(sides, dim=-1)  # (B, S, H)
        return x, torch.cat(ends, dim=-1)


def reversal(lengths: Tensor, max_length: int) -> Tensor:
    """(B, max_length): where each position's token stands when a row's tokens are read backwards; padding stays."""
    places = torch.arange(max_length, device=lengths.device).expand(lengths.size(0), -1)
    return torch.where(places < lengths[:, None], lengths[:, None] - 1 - places, places)
