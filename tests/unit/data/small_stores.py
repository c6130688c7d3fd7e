"""Makes small stores, one token per word, for tests of their readers."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

from headwise.config import schema
from headwise.data.chunks import Chunks, Files
from headwise.data.store import Store
from headwise.data.writer import cached_store, write_files
from headwise.text.tokenizer import Tokenizer

WORDS = ["a", "big", "brown", "dog", "runs", "over", "the", "green", "hill", "and", "sees", "two", "small", "birds"]


def sentences(count: int, seed: int, longest: int = 12) -> list[str]:
    chance = random.Random(seed)
    return [" ".join(chance.choices(WORDS, k=chance.randint(1, longest))) for _ in range(count)]


@cache
def words() -> Tokenizer:
    return Tokenizer.train([" ".join(WORDS)], schema.Tokenizer.model_validate({"kind": "word", "size": 100}))


def store_of(folder: Path, **sides: list[str]) -> Store:
    """Writes a store of these texts, one token per word."""
    for side, lines in sides.items():
        (folder / side).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    chunks = Chunks(Files(**{side: [str(folder / side)] for side in sides}), schema.Filters())
    tokenizers = {side: words() for side in sides}
    return cached_store(folder / "cache", "store", lambda directory: write_files(directory, chunks, tokenizers))
