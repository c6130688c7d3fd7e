"""How gaps in a text are made and filled: each way has a file here with its object in GAPS, found by its name."""

from __future__ import annotations

import importlib

from headwise.config.family import Settings
from headwise.tasks.gaps.interface import Gaps


def gaps_of(settings: Settings) -> Gaps:
    """The way of a network with these settings."""
    found: Gaps = importlib.import_module(f"{__name__}.{settings.fills}").GAPS
    return found
