"""One of our weights and the published ones that it holds: a row of the table that serves import and export."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

import torch
from torch import Tensor

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Orders:
    """In which order the rows of vocabularies and the coordinates of the model's width are published."""

    rows: Mapping[str, Tensor]  # by side: the published row of each of ours
    width: Tensor | None = None  # the published place of each of our coordinates; None: the same
    skipped: int = 0  # rows before the first position that a token can have


@dataclass(frozen=True)
class Key:
    """Transforms are applied in the order of these fields, and undone in reverse order."""

    ours: str
    theirs: tuple[str, ...]  # several stand one below the other in ours; "" is a part that is zero and not published
    transposed: bool = False  # published as (in, out)
    published: Shape = ()  # its shape there, where it differs from ours in axes only; -1: an axis of any size
    vocabulary: Literal["", "source", "target"] = ""  # rows are tokens of this side, which we number in our own order
    width: tuple[int, ...] = ()  # axes of ours that are the model's width, which has another order there
    positions: bool = False  # rows are positions, of which some may be skipped

    def at(self, layer: int) -> Key:
        """The key of one layer: its number stands in for {}."""
        return replace(self, ours=self.ours.format(layer), theirs=tuple(name.format(layer) for name in self.theirs))

    @property
    def names(self) -> list[str]:
        """The published names."""
        return [name for name in self.theirs if name]

    def fits(self, shapes: Sequence[Shape], ours: Shape | None, skipped: int = 0) -> bool:
        """Whether published tensors of these shapes make one of ours with that shape."""
        if ours is None:
            return False
        if self.published:
            return len(shapes) == 1 and _matches(shapes[0], self.published) and prod(shapes[0]) == prod(ours)
        turned = [shape[::-1] if self.transposed else shape for shape in shapes]
        if not all(shape and shape[1:] == ours[1:] for shape in turned):
            return False
        rows = [shape[0] for shape in turned]
        return sum(rows) + self.theirs.count("") * rows[0] == ours[0] + (skipped if self.positions else 0)

    def to_ours(self, tensors: Sequence[Tensor], ours: Shape, orders: Orders) -> Tensor:
        turned = [x.T if self.transposed else x for x in tensors]
        if len(turned) < len(self.theirs):
            given = iter(turned)
            turned = [next(given) if name else torch.zeros_like(turned[0]) for name in self.theirs]
        whole = turned[0] if len(turned) == 1 else torch.cat(turned)
        whole = (whole[orders.skipped :] if self.positions else whole).reshape(ours)
        width = self.width if orders.width is not None else ()
        if self.vocabulary and width == (1,):  # both at once: a large table is copied once
            return whole[orders.rows[self.vocabulary][:, None], orders.width]
        whole = whole[orders.rows[self.vocabulary]] if self.vocabulary else whole
        for axis in width:
            assert orders.width is not None
            whole = whole.index_select(axis, orders.width)
        return whole.contiguous()

    def to_theirs(self, tensor: Tensor, orders: Orders) -> dict[str, Tensor]:
        for axis in self.width:
            tensor = tensor if orders.width is None else tensor.index_select(axis, orders.width.argsort())
        tensor = tensor[orders.rows[self.vocabulary].argsort()] if self.vocabulary else tensor
        if self.positions:
            tensor = torch.cat((tensor.new_zeros(orders.skipped, *tensor.shape[1:]), tensor))
        parts = [tensor.reshape(self.published)] if self.published else tensor.chunk(len(self.theirs))
        named = [(name, x.T if self.transposed else x) for name, x in zip(self.theirs, parts, strict=True) if name]
        # Copies, because a part of another tensor cannot be stored by itself.
        return {name: x.clone(memory_format=torch.contiguous_format) for name, x in named}


def modules(ours: str, theirs: str, names: Mapping[str, str | tuple[str, ...]]) -> list[Key]:
    """Weight and bias of each module, under a prefix of ours and one of theirs: `names` has our name and theirs.

    Several of theirs stand one below the other in ours, as queries, keys and values do.
    """
    return [
        Key(f"{ours}{one}.{kind}", tuple(f"{theirs}{name}.{kind}" for name in _each(there)))
        for one, there in names.items()
        for kind in ("weight", "bias")
    ]


def without_prefix(keys: Iterable[Key], prefix: str) -> Iterator[Key]:
    """A network by itself has the names that it has inside of a larger one, without their first part."""
    return (replace(key, theirs=tuple(name.removeprefix(prefix) for name in key.theirs)) for key in keys)


def _each(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names


def _matches(shape: Shape, pattern: Shape) -> bool:
    return len(shape) == len(pattern) and all(b in (-1, a) for a, b in zip(shape, pattern, strict=True))
