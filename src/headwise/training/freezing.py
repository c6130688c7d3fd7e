"""Keeps some of a model's weights as they are while the rest is trained."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from torch import nn

from headwise.errors import RecipeError


def freeze(model: nn.Module, patterns: Sequence[str]) -> int:
    """Freezes the weights whose names match a pattern, such as 'encoder.*'; returns how many numbers that are."""
    named = dict(model.named_parameters())
    frozen = set()
    for pattern in patterns:
        matched = [name for name in named if fnmatchcase(name, pattern)]
        if not matched:
            tops = ", ".join(dict.fromkeys(name.partition(".")[0] for name in named))
            raise RecipeError(f"training.freeze: no weight is named like '{pattern}'; the model's parts are {tops}")
        frozen.update(matched)
    if frozen and len(frozen) == len(named):
        raise RecipeError("training.freeze: every weight is frozen, so there is nothing to train; leave a part out")
    for name in frozen:
        named[name].requires_grad_(False)
    return sum(named[name].numel() for name in frozen)
