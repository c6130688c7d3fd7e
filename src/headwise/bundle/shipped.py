"""The models that come with Headwise, inside of the package: their names and folders. Needs no torch.

A shipped model is a model directory like any other, in headwise/shipped/NAME, with the fast engine's form beside the
weights. The folder may be read-only: nothing is ever written there after installation.
"""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "shipped"


def shipped_directories() -> dict[str, Path]:
    """Name and folder of each, in the order of names."""
    if not FOLDER.is_dir():
        return {}
    return {path.name: path for path in sorted(FOLDER.iterdir()) if (path / "config.json").is_file()}


def locate(name: str | Path) -> Path:
    """A model directory from its path, from that of its run or checkpoint, or from the name of a shipped one.

    A path that exists wins.
    """
    path = Path(name)
    if not os.path.exists(path):
        return shipped_directories().get(str(name), path)
    inside = path / "model"
    return inside if not os.path.isfile(path / "config.json") and os.path.isfile(inside / "config.json") else path


def is_shipped(path: Path) -> bool:
    return path.resolve().parent == FOLDER.resolve()
