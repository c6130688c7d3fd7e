"""Small pictures for tests: folders of classes, idx files."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import tomli_w
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


def stripes(count: int, size: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Grey pictures of horizontal (0) and vertical (1) stripes with noise, and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % 2
    lines = (np.arange(size) // 2 % 2 * 150)[None, :, None].repeat(count, axis=0).repeat(size, axis=2)
    lines = np.roll(lines, 1, axis=1) if seed % 2 else lines
    pictures = np.where(labels[:, None, None] == 0, lines, lines.transpose(0, 2, 1)) + rng.integers(
        0, 100, (count, size, size)
    )
    return pictures.astype(np.uint8), labels


SMALL_VIT = {
    "data": {"images": "train-images-idx3-ubyte", "labels": ["lying", "standing"], "split": 0.2},
    "task": "classify",
    "images": {"shift": 1},
    "model": {
        "family": "vit", "preset": "vit-tiny", "image_size": 8, "patch_size": 2, "model_dim": 16, "num_heads": 2,
        "layers": 1, "ff_dim": 16,
    },
    "training": {
        "batch_tokens": 320, "steps": 40, "warmup": 5, "schedule": "cosine", "optimizer": "adamw",
        "learning_rate": 0.01, "validate_every": 20, "save_every": 20, "log_every": 10, "threads": 1, "ema": 0.9,
        "best": "accuracy",
    },
}  # fmt: skip


def write_picture_recipe(folder: Path, pictures: int = 200, **changes: dict[str, object]) -> Path:
    """Stripes as idx files for training and test, and a recipe that learns them in seconds; returns the recipe."""
    folder.mkdir(parents=True, exist_ok=True)
    write_idx(folder, *stripes(pictures))
    write_idx(folder, *stripes(40, seed=2), name="test")
    sections = {name: value for name, value in SMALL_VIT.items() if isinstance(value, dict)}
    merged = {name: {**section, **changes.get(name, {})} for name, section in sections.items()}
    recipe = folder / "recipe.toml"
    recipe.write_text(tomli_w.dumps({"task": "classify", **merged}), encoding="utf-8")
    return recipe
