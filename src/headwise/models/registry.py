"""From a family's name and its architecture to a network with new weights."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from headwise.config.families import family_names, find_family
from headwise.errors import ModelError
from headwise.models.interface import Network


def network_class(family: str) -> type[Network]:
    """The class that a family's declaration names."""
    declared = find_family(family)
    if declared is None:
        raise ModelError(f"unknown model family '{family}'; this version has {', '.join(family_names())}")
    module, _, name = declared.network.partition(":")
    found: type[Network] = getattr(importlib.import_module(module), name)
    return found


def build_model(family: str, architecture: Mapping[str, Any]) -> Network:
    """A network with new weights."""
    return network_class(family)(**architecture)
