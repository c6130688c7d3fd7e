"""A compact set of 64-bit hashes, to find duplicates in corpora of many millions of lines.

A Python set of integers takes about 70 bytes per entry; this table takes 11 to 22, and about 40 while it grows. Any two
of n different texts share a hash with a probability of n² / 2⁶⁵: one in 370,000 for ten million lines.
"""

from __future__ import annotations

from array import array

import numpy as np

FILL = 0.7
TAIL = 1024  # room after the last slot, so that probing never wraps around


class HashSet:
    """Hashes items with open addressing and linear probing.

    The high bits of a hash choose its slot, so sorted hashes are in slot order.
    """

    def __init__(self) -> None:
        self._bits = 12
        self._count = 0
        self._table = array("Q", bytes(8 * ((1 << self._bits) + TAIL)))

    def __len__(self) -> int:
        return self._count

    def add(self, item: str | tuple[str, ...]) -> bool:
        """Adds an item; returns whether it is new. Python's hashes differ between processes: never store the table."""
        key = hash(item) & 0xFFFFFFFFFFFFFFFF or 1  # zero marks a free slot
        slot = key >> (64 - self._bits)
        table = self._table
        while found := table[slot]:
            if found == key:
                return False
            slot += 1
        table[slot] = key
        self._count += 1
        # The tail must keep a free slot, or probing would run off the table.
        if self._count > FILL * (1 << self._bits) or slot == len(table) - 2:
            self._grow()
        return True

    def _grow(self) -> None:
        old = np.frombuffer(self._table, dtype=np.uint64)
        keys = np.sort(old[old != 0])
        del old
        self._bits += 1
        # In sorted order each key goes to its own slot, or right after its predecessor if the slot is taken.
        order = np.arange(len(keys), dtype=np.int64)
        slots = (keys >> np.uint64(64 - self._bits)).astype(np.int64)
        slots = np.maximum.accumulate(slots - order) + order
        size = max((1 << self._bits) + TAIL, int(slots[-1]) + TAIL)
        self._table = array("Q", bytes(8 * size))
        np.frombuffer(self._table, dtype=np.uint64)[slots] = keys
