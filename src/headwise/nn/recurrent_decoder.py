"""A recurrent decoder with attention over the source: Luong et al. 2015 (arXiv 1508.04025).

At each step the new state s looks at the source and becomes the attentional vector (equation 5)

    a = tanh(W [s; context])

from which the next word is predicted. With input feeding (section 3.3) the next step reads [embedding; a]. The scores
may be Bahdanau's; his decoder differs in that the state *before* the step looks at the source.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from headwise.nn.dropout import Dropout
from headwise.nn.global_attention import GlobalAttention
from headwise.nn.recurrent import LayerState, RecurrentLayer


@dataclass(frozen=True)
class SourceStates:
    """What a decoder looks at, one row per sentence."""

    memory: Tensor  # (sentences, S, H)
    keys: Tensor  # (sentences, S, …)
    allowed: Tensor | None  # (sentences, 1, S); None: there is no padding

    def select(self, sentences: Tensor) -> SourceStates:
        if torch.equal(sentences, torch.arange(len(self.memory), device=sentences.device)):
            return self
        allowed = None if self.allowed is None else self.allowed[sentences]
        return SourceStates(self.memory[sentences], self.keys[sentences], allowed)


@dataclass
class RecurrentState:
    """All that a step needs of the past. Rows are hypotheses; `group` of them share a source sentence.

    Before they first differ, one row per sentence is enough.
    """

    layers: list[LayerState]  # (rows, H) each
    vector: Tensor  # the newest attentional vector, (rows, D)
    source: SourceStates | None  # None: there is no attention
    group: int = 1
    length: int = 0

    @property
    def rows(self) -> int:
        return self.vector.size(0)

    def reorder(self, indices: Tensor) -> None:
        """Row i becomes the old row indices[i]. Rows are then in groups of `group`, each group from one sentence."""
        if self.source is not None:
            width = self.rows // len(self.source.memory)
            self.source = self.source.select(indices.view(-1, self.group)[:, 0] // width)
        self._take(indices)

    def widen(self, rows: int) -> None:
        """Repeats each row until there are `rows`."""
        if rows != self.rows:
            self._take(torch.arange(self.rows, device=self.vector.device).repeat_interleave(rows // self.rows))

    def _take(self, indices: Tensor) -> None:
        self.layers = [tuple(part[indices] for part in layer) for layer in self.layers]
        self.vector = self.vector[indices]


class RecurrentDecoder(nn.Module):
    """Embeddings of the target (B, T, D) to attentional vectors (B, T, D)."""

    def __init__(
        self,
        cell: str,
        model_dim: int,
        hidden_dim: int,
        num_layers: int,
        attention: GlobalAttention | None,
        *,
        input_feeding: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        self.model_dim, self.input_feeding = model_dim, input_feeding
        inputs = [model_dim * (2 if input_feeding else 1)] + [hidden_dim] * (num_layers - 1)
        self.layers = nn.ModuleList(RecurrentLayer(cell, size, hidden_dim) for size in inputs)
        # Bahdanau et al., appendix A.2.2: the first state is tanh(W h) of the encoder's last.
        self.bridge = nn.Linear(hidden_dim, sum(layer.parts for layer in self._layers()) * hidden_dim)
        self.attention = attention
        self.combine = nn.Linear(hidden_dim * (1 if attention is None else 2), model_dim)
        self.dropout = Dropout(dropout)

    def start(self, memory: Tensor, ends: Tensor, allowed: Tensor | None, group: int = 1) -> RecurrentState:
        """The state before the first token: memory (B, S, H), ends of the encoder (B, H), allowed (B, 1, S)."""
        parts = iter(torch.tanh(self.bridge(ends)).view(len(ends), -1, ends.size(1)).unbind(1))
        layers = [tuple(next(parts) for _ in range(layer.parts)) for layer in self._layers()]
        source = None
        if self.attention is not None:
            source = SourceStates(memory, self.attention.score.keys(memory), allowed)
        return RecurrentState(layers, memory.new_zeros(len(ends), self.model_dim), source, group)

    def forward(self, x: Tensor, state: RecurrentState) -> Tensor:
        """All attentional vectors of known targets, (B, T, D) -> (B, T, D). Leaves `state` as it is."""
        out: Tensor = self.dropout(self._unrolled(x, state) if self.input_feeding else self._whole(x, state))
        return out

    def _whole(self, x: Tensor, state: RecurrentState) -> Tensor:
        """Nothing waits for an attentional vector: each layer reads the whole target in one call."""
        for number, layer in enumerate(self.layers):
            x = layer(self.dropout(x) if number else x, state.layers[number])
        if self.attention is None or state.source is None:
            return torch.tanh(self.combine(x))
        source = state.source
        context = self.attention(x, source.keys, source.memory, source.allowed)
        return torch.tanh(self.combine(torch.cat((x, context), dim=-1)))

    def _unrolled(self, x: Tensor, state: RecurrentState) -> Tensor:
        """Each step reads the attentional vector of the step before. What the embeddings add is computed at once."""
        state, vectors, seen = replace(state), list[Tensor](), list[Tensor]()
        for projected in self.layers[0].project(x).unbind(1):  # type: ignore[operator]
            vectors.append(self._step(projected, state, seen))
        if self.attention is not None:
            self.attention.show(seen, None if state.source is None else state.source.allowed)
        return torch.stack(vectors, dim=1)

    def advance(self, x: Tensor, state: RecurrentState) -> Tensor:
        """One more token per row, (rows, D) -> its attentional vector, (rows, D)."""
        state.widen(x.size(0))
        return self._step(self._layers()[0].project(x), state, [])

    def _step(self, projected: Tensor, state: RecurrentState, seen: list[Tensor]) -> Tensor:
        """`projected` is what the embeddings add to the first layer's gates; `seen` gets the attention weights."""
        if self.input_feeding:
            projected = projected + self._layers()[0].project_rest(state.vector)
        layers = list[LayerState]()
        for number, layer in enumerate(self._layers()):
            if number:
                projected = layer.project(self.dropout(layers[-1][0]))
            layers.append(layer.step(projected, state.layers[number]))
        hidden = layers[-1][0]  # (rows, H)
        joined = hidden
        if self.attention is not None and state.source is not None:
            source = state.source
            query = hidden.view(len(source.memory), -1, hidden.size(1))  # hypotheses stand side by side
            context, weights = self.attention.attend(query, source.keys, source.memory, source.allowed)
            seen.append(weights)
            joined = torch.cat((hidden, context.view_as(hidden)), dim=-1)
        state.layers, state.vector = layers, torch.tanh(self.combine(joined))
        state.length += 1
        return state.vector

    def _layers(self) -> list[RecurrentLayer]:
        return list(self.layers)  # type: ignore[arg-type]
