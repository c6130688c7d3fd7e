"""Small pictures for tests: folders of classes, idx files."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image


def write_folder(folder: Path, counts: Mapping[str, int], size: int = 12, seed: int = 0) -> None:
    """folder/class/0.png …: a class is a colour of its own, with noise."""
    rng = np.random.default_rng(seed)
    for number, (label, count) in enumerate(counts.items()):
        (folder / label).mkdir(parents=True, exist_ok=True)
        colour = np.eye(3)[number % 3] * 150
        for picture in range(count):
            noise = rng.integers(0, 100, (size, size, 3))
            pixels = (colour + noise).astype(np.uint8)
            Image.fromarray(pixels).save(folder / label / f"{picture}.png")


def write_idx(folder: Path, pictures: np.ndarray, labels: Sequence[int], name: str = "train") -> str:
    """Both files, as MNIST names them; returns that of the pictures."""
    images = folder / f"{name}-images-idx3-ubyte"
    for file, values in (
        (images, np.asarray(pictures)), (folder / f"{name}-labels-idx1-ubyte", np.asarray(labels))
    ):  # fmt: skip
        header = bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape)
        file.write_bytes(header + values.astype(np.uint8).tobytes())
    return str(images)
