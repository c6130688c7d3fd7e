"""Caches of earlier tokens, so that a decoding step computes only the newest one."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor


class Cache(Protocol):
    """What one layer keeps of the past: keys and values, a segment memory, running sums, or a recurrent state.

    Only the layer that created a cache fills it; a search only reorders its rows.
    """

    length: int  # tokens so far

    def reorder(self, indices: Tensor) -> None:
        """Row i becomes the old row indices[i]; rows may be repeated, dropped or permuted."""
        ...


class KeyValueCache:
    """Keys and values. The capacity doubles when it runs out; otherwise a step copies two vectors per row only."""

    def __init__(self, capacity: int = 32) -> None:
        self.capacity = capacity
        self.length = 0
        self._key: Tensor | None = None
        self._value: Tensor | None = None

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Adds (B, H, T, K) and returns everything so far, (B, H, length, K)."""
        start, self.length = self.length, self.length + key.size(2)
        self._key = self._with_room(self._key, key)
        self._value = self._with_room(self._value, value)
        self._key[:, :, start : self.length] = key
        self._value[:, :, start : self.length] = value
        return self._key[:, :, : self.length], self._value[:, :, : self.length]

    def join(self, x: Tensor) -> Tensor:
        """Returns the inputs (B, T, D) that keys and values are computed from: the new ones, unless inputs are kept."""
        return x

    def contents(self) -> tuple[Tensor, Tensor]:
        """Returns all keys and values, (B, H, length, K) each; the cache must not be empty."""
        assert self._key is not None
        assert self._value is not None
        return self._key[:, :, : self.length], self._value[:, :, : self.length]

    def reorder(self, indices: Tensor) -> None:
        if self._key is not None and self._value is not None:
            self._key = self._select(self._key, indices)
            self._value = self._select(self._value, indices)

    def _with_room(self, store: Tensor | None, new: Tensor) -> Tensor:
        if store is not None and store.size(2) >= self.length:
            return store
        while self.capacity < self.length:
            self.capacity *= 2
        grown = new.new_empty(new.size(0), new.size(1), self.capacity, new.size(3))
        if store is not None:
            grown[:, :, : store.size(2)] = store
        return grown

    def _select(self, store: Tensor, indices: Tensor) -> Tensor:
        chosen = store.new_empty(indices.numel(), *store.shape[1:])
        torch.index_select(store[:, :, : self.length], 0, indices, out=chosen[:, :, : self.length])
        return chosen


class NoCache(KeyValueCache):
    """Stores nothing: for computing a whole sequence in one pass."""

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        return key, value


NO_CACHE = NoCache()


class WindowCache(NoCache):
    """Keys and values of the last `window` tokens, for attention that looks back no further."""

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window
        self._kept: Tensor | None = None  # (2, B, H, at most window, K)

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Adds (B, H, T, K); returns what the new tokens may see: those that are kept, and the new ones themselves."""
        new = torch.stack((key, value))
        whole = new if self._kept is None else torch.cat((self._kept, new), dim=3)
        self._kept = whole[:, :, :, max(0, whole.size(3) - self.window) :]
        self.length += key.size(2)
        return whole[0], whole[1]

    def reorder(self, indices: Tensor) -> None:
        if self._kept is not None:
            self._kept = self._kept.index_select(1, indices)


class SegmentMemory(NoCache):
    """The inputs of an attention in earlier segments, without gradients (Dai et al. 2019, section 3.2).

    Keys and values are computed from them anew, so the projections learn from the memory too.
    """

    def __init__(self, size: int, states: Tensor | None = None) -> None:
        super().__init__()
        self.size, self.states = size, states  # states: (B, at most size, D)

    def join(self, x: Tensor) -> Tensor:
        """Puts the memory before the new inputs (B, T, D), and remembers the last `size` of both."""
        whole = x if self.states is None else torch.cat((self.states, x), dim=1)
        self.states = whole[:, max(0, whole.size(1) - self.size) :].detach()
        self.length += x.size(1)
        return whole

    def reorder(self, indices: Tensor) -> None:
        if self.states is not None:
            self.states = self.states.index_select(0, indices)
