"""How long an update takes on this machine: measured once, before a run that is given minutes begins."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import mean

from headwise.data.cursor import Batches, Cursor
from headwise.training.step import Updater

WARM_UPDATES, TIMED_UPDATES = 2, 8
LONGEST = 30.0  # seconds that the measurement may take
TRAINING_SHARE = 0.93  # of a run's time; the rest is for validation and checkpoints


def seconds_per_update(make_updater: Callable[[], Updater], batches: Batches) -> float:
    """The mean over batches from all over the first epoch, on a model that is thrown away."""
    updater, count = make_updater(), batches.count(0)
    wanted = WARM_UPDATES + TIMED_UPDATES
    places = [number * count // wanted for number in range(wanted)]
    began, seconds = time.monotonic(), []
    for number, place in enumerate(places):
        start = time.monotonic()
        updater(batches.make(Cursor(0, place)), 1e-6, number)
        if number >= WARM_UPDATES or time.monotonic() - began > LONGEST:
            seconds.append(time.monotonic() - start)
        if time.monotonic() - began > LONGEST:
            break
    return max(mean(seconds), 1e-6)
