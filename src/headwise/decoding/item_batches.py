"""Puts items of similar size together, so that little of a batch is padding. No torch."""

from __future__ import annotations

from collections.abc import Sequence

MOST_ROWS, MOST_COST = 64, 4096  # of a batch: items, and items times the largest (tokens with their padding)


def similar(costs: Sequence[int], rows: int = MOST_ROWS, cost: int = MOST_COST) -> list[list[int]]:
    """Batches of places in `costs`, largest first; every place is in exactly one."""
    batches: list[list[int]] = []
    room = 0
    for place in sorted(range(len(costs)), key=lambda place: -costs[place]):
        if not room:
            batches.append([])
            room = max(1, min(rows, cost // max(1, costs[place])))
        batches[-1].append(place)
        room -= 1
    return batches
