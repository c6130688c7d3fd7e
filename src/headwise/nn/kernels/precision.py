"""What hand-written kernels do in mixed precision."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.amp import is_autocast_available

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def in_float32(kernel: Kernel) -> Kernel:
    """Lets a kernel, whose first argument is a tensor, compute in float32 under autocast.

    Autocast chooses a type for each operation of PyTorch. A kernel that writes results of one into another needs a
    single type, and sums over many terms need float32. The layers' projections keep the lower precision.
    """

    @wraps(kernel)
    def run(*given: Any) -> Any:
        device = given[0].device.type
        if not (is_autocast_available(device) and torch.is_autocast_enabled(device)):
            return kernel(*given)
        with torch.autocast(device, enabled=False):
            return kernel(*(_wide(one) for one in given))

    return run  # type: ignore[return-value]


def _wide(given: Any) -> Any:
    return given.float() if isinstance(given, Tensor) and given.is_floating_point() else given
