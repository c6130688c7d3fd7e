"""A run that stops at any batch and starts again sees what an uninterrupted run sees, piece for piece."""

from __future__ import annotations

import random
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from headwise.config import schema
from headwise.data.batch import Batch
from headwise.data.blocks import StreamBatches
from headwise.data.cursor import Batches, Cursor, walk
from headwise.data.prefetch import Prefetch
from headwise.tasks import find_task
from headwise.workflows.prepare import prepare

BATCHES = 40  # more than two epochs of each kind


def write_corpus(folder: Path) -> None:
    chance = random.Random(11)
    words = ["water", "falls", "from", "the", "highest", "mountain", "into", "a", "deep", "lake"]
    for name in ("text", "other"):
        lines = [" ".join(chance.choices(words, k=chance.randint(2, 14))) for _ in range(150)]
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def source_of(kind: str, folder: Path) -> Batches:
    """Batches from files, as a new process makes them."""
    training = {"batch_tokens": 500, "seed": 5}
    if kind in ("bpe", "unigram"):
        values = {
            "data": {"source": "text", "target": "other"},
            "tokenizer": {"kind": kind, "size": 300, "dropout": 0.2},
            "training": training,
        }
    else:
        values = {
            "data": {"text": "text"},
            "tokenizer": {"kind": "word"},
            "model": {"family": "lm"},
            "training": training,
        }
    recipe = schema.Recipe.model_validate(values)
    prepared = prepare(recipe, folder, folder / "cache")
    if kind == "streams":
        return StreamBatches(prepared.training, 500, 20)
    longest = 20 if kind == "blocks" else None
    return find_task(recipe.task_name).batches(prepared.training, recipe, prepared.assets, longest)


def content(batch: Batch) -> list[Any]:
    inputs = [tensor.tolist() for tensor in batch.inputs]
    return [batch.index, inputs, batch.targets.tolist(), batch.lines.tolist()]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "blocks", "streams"])
def test_a_run_stopped_after_any_batch_goes_on_as_if_it_had_not_stopped(kind: str, tmp_path: Path) -> None:
    write_corpus(tmp_path)
    with Prefetch(walk(source_of(kind, tmp_path)), ahead=3) as ready:
        whole = list(islice(ready, BATCHES))
    assert whole[-1][1].epoch >= 2
    for stop in range(1, BATCHES, 7):
        cursor = whole[stop - 1][1]
        with Prefetch(walk(source_of(kind, tmp_path), cursor), ahead=3) as ready:
            rest = list(islice(ready, BATCHES - stop))
        assert [content(batch) for batch, _ in rest] == [content(batch) for batch, _ in whole[stop:]]
        assert rest[-1][1] == whole[-1][1]


@pytest.mark.parametrize("kind", ["bpe", "blocks"])
def test_another_process_makes_the_same_batch_from_a_cursor(kind: str, tmp_path: Path) -> None:
    write_corpus(tmp_path)
    program = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_data_resume import *
print(content(source_of({kind!r}, Path({str(tmp_path)!r})).make(Cursor(3, 2))))
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert ran.stdout.strip() == str(content(source_of(kind, tmp_path).make(Cursor(3, 2))))
