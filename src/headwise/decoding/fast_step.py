"""The cached step of `Transformer` with nothing around it: no module calls, no axis for time, one cache for all layers.

A step of a small model is mostly overhead, and this has about a third of it. It computes what `Transformer.step`
computes on the same weights (tests/same/test_decoding_steps.py), of which it holds copies in the order of their use.
"""

from __future__ import annotations

import math
import threading
import weakref
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from headwise.decoding.fast_layers import Cross, Layer, Norm, pasts
from headwise.models.transformer import Memory, Transformer

_FIRST_CAPACITY = 32  # tokens


@dataclass
class FastState:
    """The past of every row. Rows are `beam` for each sentence, or one in the first step."""

    cross: list[Cross]
    past: Tensor  # keys and values so far, (capacity, layers, 2, rows, D)
    room: tuple[Tensor, Tensor]  # flat: where `past` lies, and where rows are put when they are reordered
    beam: int
    sentences: int
    length: int = 0

    @property
    def width(self) -> int:
        return self.past.size(3) // self.sentences

    def reorder(self, indices: Tensor) -> None:
        """Row i becomes the old row indices[i]; rows are then in groups of `beam`, and sentences in their order."""
        (here, spare), width = self.room, self.width
        moved = self._with_rows(spare, indices.numel())
        used, free = (x[: self.length].flatten(0, 2) for x in (self.past, moved))  # (length · layers · 2, rows, D)
        torch.index_select(used, 1, indices, out=free)
        self.past, self.room = moved, (spare, here)
        if indices.numel() < self.sentences * self.beam:
            kept = indices[:: self.beam].div(width, rounding_mode="floor")
            self.sentences = kept.numel()
            self.cross = [cross.select(kept) for cross in self.cross]

    def make_room(self, rows: int) -> None:
        """For one token more of so many rows."""
        if self.length == 0:
            self.past = self._with_rows(self.room[0], rows)
        elif self.length == self.past.size(0):
            self.past = torch.cat((self.past, torch.empty_like(self.past)))
            self.room = self.past.view(-1), torch.empty_like(self.past).view(-1)

    def _with_rows(self, room: Tensor, rows: int) -> Tensor:
        capacity, layers, two, _, width = self.past.shape
        numbers = capacity * layers * two * rows * width
        if numbers > room.numel():
            raise ValueError("a search has at most as many rows as it was begun with")
        return room[:numbers].view(capacity, layers, two, rows, width)


class Rooms(threading.local):
    """Memory for the past, which a thread's next search takes over: the first touch of fresh pages costs more than
    what is then put there. It goes with its thread, or with the model."""

    def __init__(self) -> None:
        self._taken_by: weakref.ref[FastState] | None = None
        self._room: tuple[Tensor, Tensor] | None = None

    def state(self, cross: list[Cross], like: Tensor, shape: tuple[int, ...], beam: int, sentences: int) -> FastState:
        numbers, room = math.prod(shape), self._room
        in_use = self._taken_by is not None and self._taken_by() is not None
        if in_use or room is None or room[0].numel() < numbers or _kind(room[0]) != _kind(like):
            room = like.new_empty(numbers), like.new_empty(numbers)
        state = FastState(cross, room[0][:numbers].view(shape), room, beam, sentences)
        if not in_use:
            self._room, self._taken_by = room, weakref.ref(state)
        return state


def _kind(tensor: Tensor) -> tuple[torch.dtype, torch.device]:
    return tensor.dtype, tensor.device


class FastTransformer:
    """The two halves of a step, for the searches, of a `Transformer`."""

    @torch.inference_mode()
    def __init__(self, model: Transformer) -> None:
        self.model, self._rooms = model, Rooms()
        self.table = model.target_embedding.weight * model.target_embedding.scale  # (V, D)
        self._positions: dict[int, Tensor] = {}  # (D,) each
        self.layers = [Layer.of(layer) for layer in model.decoder.layers]  # type: ignore[arg-type]
        self.norm = Norm.of(model.decoder.norm) if isinstance(model.decoder.norm, nn.LayerNorm) else None
        self.output = model.output.weight.t().contiguous()  # (D, V)
        self.model_dim: int = model.architecture["model_dim"]
        self.num_heads: int = model.architecture["num_heads"]

    def encode(self, source_ids: Tensor, source_lengths: Tensor | None = None) -> Memory:
        return self.model.encode(source_ids, source_lengths)

    def start(self, memory: Memory, beam: int = 1) -> FastState:
        states = memory.states
        sentences = states.size(0)
        cross = [layer.cross.of_memory(states, memory.allowed, beam) for layer in self.layers]
        shape = _FIRST_CAPACITY, len(self.layers), 2, sentences * beam, self.model_dim
        return self._rooms.state(cross, states, shape, beam, sentences)

    def advance(self, state: FastState, tokens: Tensor) -> Tensor:
        """Appends one token a row, (rows,), and gives what `project` makes logits of, (rows, D)."""
        state.make_room(tokens.numel())
        width, length = state.width, state.length
        x = torch.embedding(self.table, tokens).add_(self._position(length))  # (rows, D)
        newest = state.past[length].flatten(0, 1).unbind(0)  # key and value of each layer, (rows, D)
        said = pasts(state.past[: length + 1], self.num_heads)
        for layer, key, value, past, cross in zip(
            self.layers, newest[::2], newest[1::2], said, state.cross, strict=True
        ):
            y = layer.self_norm(x) if layer.pre else x
            torch.mm(y, layer.key, out=key)
            torch.mm(y, layer.value, out=value)
            x = layer.self_out.add_to(x, past(layer.query(y)))
            if layer.pre:
                x = cross.add_to(x, layer.cross_norm(x), width)
                x = layer.outer.add_to(x, layer.activation(layer.inner(layer.feed_norm(x))))
            else:
                x = layer.self_norm(x)
                x = layer.cross_norm(cross.add_to(x, x, width))
                x = layer.feed_norm(layer.outer.add_to(x, layer.activation(layer.inner(x))))
        state.length += 1
        return x if self.norm is None else self.norm(x)

    def _position(self, length: int) -> Tensor:
        """What is added to the embedding of a token after so many."""
        if length not in self._positions:
            nothing = self.table.new_zeros(1, 1, self.model_dim)
            self._positions[length] = self.model.target_positions(nothing, length).view(-1)
        return self._positions[length]

    def project(self, states: Tensor, out: Tensor | None = None) -> Tensor:
        """(rows, D) -> logits (rows, V)."""
        return torch.mm(states, self.output, out=out)
