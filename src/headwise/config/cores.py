"""How many cores this process uses. The one place that decides it; needs no torch."""

from __future__ import annotations

import os


def machine_cores() -> int:
    """The cores that this process may run on."""
    return len(os.sched_getaffinity(0))


def decoding_cores() -> int:
    """Cores of the engines that decode: what OMP_NUM_THREADS says, else all."""
    told = os.environ.get("OMP_NUM_THREADS", "")
    return int(told) if told.isdecimal() and int(told) > 0 else machine_cores()


def training_cores(wanted: int = 0, processes: int = 1) -> int:
    """Cores of a training process: the number asked for (`training.threads`), else its even share of the machine.

    OMP_NUM_THREADS does not count here: torchrun sets it to 1 for every process it starts.
    """
    return wanted or max(1, machine_cores() // processes)
