"""A published model, read: what a model directory of ours is made from, whatever format it came in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from headwise.bundle.assets import Assets
from headwise.errors import ModelError


class Weights(Mapping[str, Tensor]):
    """Tensors that are read one at a time, when they are asked for: a model is never in memory twice."""

    def __init__(self, place: object, shapes: Mapping[str, tuple[int, ...]], read: Callable[[str], Tensor]) -> None:
        self.place, self.shapes, self._read = place, shapes, read

    def __getitem__(self, name: str) -> Tensor:
        tensor = self._read(name)
        assert tuple(tensor.shape) == self.shapes[name]
        # NaN and infinity are among the extremes; isfinite() of a large table would need as much memory again.
        if tensor.numel() and not all(extreme.isfinite() for extreme in tensor.aminmax()):
            raise ModelError(f"{self.place}: {name} has numbers that are NaN or infinite; take another copy")
        return tensor

    def __contains__(self, name: object) -> bool:
        return name in self.shapes

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)


@dataclass(frozen=True)
class Imported:
    """Settings, weights and other files, checked against each other."""

    family: str
    task: str
    architecture: dict[str, Any]
    weights: Weights
    assets: Assets
    languages: tuple[str, ...] = ()
    decoding: dict[str, Any] = field(default_factory=dict)
    origin: dict[str, Any] = field(default_factory=dict)  # for the card
    golden: list[int] | None = None  # what the model answers to a fixed input, where its files say so
