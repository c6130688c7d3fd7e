"""Chooses the device, precision and thread counts of a training run."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from headwise.config.ranks import Ranks
from headwise.config.schema import Training
from headwise.errors import UsageError


def choose_device(name: str, ranks: Ranks | None = None) -> torch.device:
    """Resolves `auto` to a GPU if there is one; each process on a machine gets its own GPU."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and ranks is not None and ranks.size > 1:
        name = f"cuda:{ranks.local_rank}"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"training.device '{name}' is not available on this machine; use auto or cpu") from error
    return device


def choose_precision(settings: Training, device: torch.device) -> torch.dtype | None:
    """Returns the autocast type, None for plain fp32. `auto` never picks bf16 on a CPU: many emulate it, slowly."""
    if settings.precision == "auto":
        return torch.bfloat16 if device.type == "cuda" and torch.cuda.is_bf16_supported() else None
    return torch.bfloat16 if settings.precision == "bf16" else None


def keep_memory() -> None:
    """Makes glibc keep freed memory instead of returning it and faulting it in again at every update.

    The page faults cost up to a tenth of the time. Has no effect with other C libraries.
    """
    mmap_threshold, trim_threshold, top_pad = -3, -1, -2  # M_MMAP_THRESHOLD, … of malloc.h
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return
    for name, value in ((mmap_threshold, 32 << 20), (trim_threshold, 2**31 - 1), (top_pad, 64 << 20)):
        mallopt(name, value)


def prepare_worker() -> None:
    """Limits a training thread to one core and flushes denormals: they are noise and cost a hundred cycles each."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)


@contextmanager
def one_core_each(cores: int = 1) -> Iterator[None]:
    """Runs every operation on one core during training, since the shares of a batch use several; restores afterwards.

    A rank that has several `cores` to itself uses them within its operations.
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
    """Runs every operation on all cores: for work during training that is not split into shares (validation)."""
    before = torch.get_num_threads()
    torch.set_num_threads(cores)
    try:
        yield
    finally:
        torch.set_num_threads(before)
