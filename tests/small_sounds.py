"""Tones with names, that a small model learns to tell apart: recordings and a recipe for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sounds import save, tone

WORDS = {"low": 300.0, "middle": 900.0, "high": 2500.0}
SETTINGS = {"model_dim": 32, "num_heads": 2, "encoder_layers": 1, "decoder_layers": 1, "ff_dim": 48, "mels": 20,
            "source_positions": 50, "padding": 10, "max_length": 12}  # fmt: skip


def write_recordings(folder: Path, count: int, seed: int = 0) -> Path:
    """Sounds of one or two tones, and their table."""
    folder.mkdir(parents=True, exist_ok=True)
    rng, rows = np.random.default_rng(seed), []
    for number in range(count):
        words = [str(word) for word in rng.choice(list(WORDS), rng.integers(1, 3))]
        save(folder / f"{number}.wav", np.concatenate([tone(0.3, WORDS[word]) for word in words]))
        rows.append(f"{number}.wav,{' '.join(words)}\n")
    table = folder / "metadata.csv"
    table.write_text("file_name,transcription\n" + "".join(rows), encoding="utf-8")
    return table


def write_sound_recipe(folder: Path, steps: int = 4, recordings: int = 24) -> Path:
    write_recordings(folder / "train", recordings)
    write_recordings(folder / "val", 6, seed=1)
    model = "\n".join(f"{name} = {value}" for name, value in SETTINGS.items())
    recipe = folder / "recipe.toml"
    recipe.write_text(
        f"""
[data]
sounds = "train/metadata.csv"
languages = ["en"]
[data.validation]
sounds = "val/metadata.csv"
[tokenizer]
kind = "word"
size = 10
[model]
family = "whisper"
dropout = 0.0
{model}
[training]
steps = {steps}
batch_tokens = 400
schedule = "constant"
learning_rate = 3e-3
warmup = 5
validate_every = {max(1, steps // 2)}
save_every = {max(1, steps // 2)}
best = "wer"
""",
        encoding="utf-8",
    )
    return recipe
