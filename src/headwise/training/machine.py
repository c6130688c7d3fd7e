"""What the machine does well: device, precision, threads."""

from __future__ import annotations

import os

import torch

from headwise.config.schema import Training
from headwise.errors import UsageError


def choose_device(name: str) -> torch.device:
    """`auto` takes a GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"training.device '{name}' is not on this machine; use auto or cpu") from error
    return device


def choose_precision(settings: Training, device: torch.device) -> torch.dtype | None:
    """None is plain fp32. A CPU computes bf16 by emulation unless it has instructions for it, many times slower."""
    if settings.precision == "auto":
        return torch.bfloat16 if device.type == "cuda" and torch.cuda.is_bf16_supported() else None
    return torch.bfloat16 if settings.precision == "bf16" else None


def prepare_cpu(threads: int) -> None:
    """As many threads as cores, and denormal numbers flushed to zero: they are noise and cost a hundred cycles each."""
    torch.set_num_threads(threads or len(os.sched_getaffinity(0)))
    torch.set_flush_denormal(True)
