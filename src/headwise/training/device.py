"""Device, precision and threads of a training."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from headwise.config.ranks import Ranks
from headwise.config.schema import Training
from headwise.errors import UsageError


def choose_device(name: str, ranks: Ranks | None = None) -> torch.device:
    """`auto` takes a GPU where there is one; of several processes on a machine each takes its own."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and ranks is not None and ranks.size > 1:
        name = f"cuda:{ranks.local_rank}"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"training.device '{name}' is not on this machine; use auto or cpu") from error
    return device


def choose_precision(settings: Training, device: torch.device) -> torch.dtype | None:
    """None is plain fp32. CPUs without bf16 instructions emulate it, many times slower."""
    if settings.precision == "auto":
        return torch.bfloat16 if device.type == "cuda" and torch.cuda.is_bf16_supported() else None
    return torch.bfloat16 if settings.precision == "bf16" else None


def keep_memory() -> None:
    """Tells glibc to keep freed memory instead of returning it and faulting it in again at every update.

    The page faults cost up to a tenth of the time. Other C libraries are left alone.
    """
    mmap_threshold, trim_threshold, top_pad = -3, -1, -2  # names of malloc.h
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return
    for name, value in ((mmap_threshold, 32 << 20), (trim_threshold, 2**31 - 1), (top_pad, 64 << 20)):
        mallopt(name, value)


def prepare_worker() -> None:
    """Keeps a training thread to one core and flushes denormal numbers, which are noise and cost a hundred cycles."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)


@contextmanager
def one_core_each(cores: int = 1) -> Iterator[None]:
    """For a whole training: operations keep to one core, and shares of a batch go to several; afterwards as before.

    A rank that has more `cores` than one to itself uses them within its operations.
    """
    before = torch.get_num_threads()
    keep_memory()
    prepare_worker()
    torch.set_num_threads(cores)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def all_cores(cores: int) -> Iterator[None]:
    """Within a training: every operation over all cores, for work that is not cut into shares (validation)."""
    before = torch.get_num_threads()
    torch.set_num_threads(cores)
    try:
        yield
    finally:
        torch.set_num_threads(before)
