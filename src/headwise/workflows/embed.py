"""Vectors of texts, with a model of sentence vectors or any other encoder."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwise.bundle.directory import open_bundle
from headwise.errors import UsageError
from headwise.files import write_whole
from headwise.tasks.embed import TASK
from headwise.tasks.embedder import Embedder

FORMATS = (".npy", ".jsonl")
_CHUNK = 1024


def open_embedder(model: str | Path, engine: str = "auto", **options: Any) -> Embedder:
    bundle = open_bundle(model)
    if TASK.name not in bundle.declared.tasks:
        raise UsageError(f"{model} is a model of the family '{bundle.family}', which has no sentence vectors")
    return TASK.open(bundle, engine, **options)


def embed_in_chunks(embedder: Embedder, texts: list[str]) -> Iterator[NDArray[np.float32]]:
    """Yields the vectors of some hundred texts at a time."""
    for start in range(0, len(texts), _CHUNK):
        yield embedder.embed(texts[start : start + _CHUNK])


def check_output(path: str) -> None:
    """Refuses a file whose name does not say what to write, before any work."""
    if Path(path).suffix not in FORMATS:
        raise UsageError(f"{path} must end with {' or '.join(FORMATS)}")


def write_vectors(path: str, texts: list[str], vectors: NDArray[np.float32]) -> None:
    """Writes a file whole or not at all: .npy, or .jsonl with each text beside its vector."""
    if Path(path).suffix == ".npy":
        stream = io.BytesIO()
        np.save(stream, vectors, allow_pickle=False)
        write_whole(path, stream.getvalue())
    else:
        write_whole(path, "".join(f"{json_line(*pair)}\n" for pair in zip(texts, vectors, strict=True)).encode())


def json_line(text: str, vector: NDArray[np.float32]) -> str:
    numbers = [round(float(number), 7) for number in vector]
    return json.dumps({"text": text, "vector": numbers}, ensure_ascii=False)
