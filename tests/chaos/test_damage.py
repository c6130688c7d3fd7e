"""A flipped bit or a cut in any file of a checkpoint or model directory is noticed before anything is used."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from counts import DAMAGES

from headwise.bundle.checkpoint import open_checkpoint, save_checkpoint
from headwise.bundle.directory import open_bundle
from headwise.bundle.weights import save_model
from headwise.config import schema
from headwise.errors import HeadwiseError
from headwise.models.transformer import Transformer
from headwise.text.tokenizer import Tokenizer, TokenizerPair


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    tokenizers = TokenizerPair.one(Tokenizer.train(["a b c d e"], schema.Tokenizer(kind="word", size=20)))
    sizes = {"model_dim": 16, "num_heads": 2, "encoder_layers": 1, "decoder_layers": 1, "ff_dim": 16}
    model = Transformer(source_vocab=tokenizers.source.size, **sizes)
    state = {"step": 7, "epoch": 0, "index": 3}
    return save_checkpoint(
        tmp_path / "checkpoints", 7,
        lambda new: save_model(new, model, tokenizers, family="transformer", languages=("en", "de")),
        {"optimizer:x": torch.arange(100.0)}, state,
    )  # fmt: skip


def flip(content: bytearray, draw: random.Random) -> bytearray:
    content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    return content


def cut(content: bytearray, draw: random.Random) -> bytearray:
    return content[: draw.randrange(len(content) - 1)]  # without its last line feed a JSON file says the same


def unnoticed(directory: Path, opened: Callable[[Path], object], count: int) -> list[str]:
    """Which of `count` pieces of damage nobody noticed."""
    draw, found = random.Random(11), []
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    for number in range(count):
        file, damage = files[number % len(files)], (flip, cut)[number % 5 == 0]
        whole = file.read_bytes()
        file.write_bytes(damage(bytearray(whole), draw))
        try:
            opened(directory)
            found.append(f"{damage.__name__} of {file.name}: {len(whole)} bytes")
        except HeadwiseError as error:
            found += [f"several lines: {error}"] if "\n" in str(error) else []
        file.write_bytes(whole)
    return found


def both(checkpoint: Path, count: int) -> list[str]:
    model = checkpoint.parent / "model"
    shutil.copytree(checkpoint / "model", model)
    open_bundle(model), open_checkpoint(checkpoint)
    return [*unnoticed(model, open_bundle, count), *unnoticed(checkpoint, open_checkpoint, count)]


def test_a_few_hundred_damages_are_all_noticed(checkpoint: Path) -> None:
    assert both(checkpoint, 150) == []


@pytest.mark.slow
def test_ten_thousand_damages_are_all_noticed(checkpoint: Path) -> None:
    assert both(checkpoint, DAMAGES // 2) == []
    print(f"\n{DAMAGES} flips and truncations noticed")
