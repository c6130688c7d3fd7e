"""Several corpora as one: what is in the store, and which rows each epoch has."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from headwise.config import schema
from headwise.data.chunks import Chunks, Files
from headwise.data.cursor import Cursor
from headwise.data.mixture import PART, MixedChunks, Mixing
from headwise.data.pairs import PairBatches
from headwise.data.rows import LabelCodes
from headwise.data.store import Store
from headwise.data.writer import cached_store, write_files
from headwise.text.tokenizer import Tokenizer


def chunks(folder: Path, name: str, lines: list[str], **options: object) -> Chunks:
    for side in ("source", "target"):
        (folder / f"{name}.{side}").write_text("".join(f"{line}\n" for line in lines))
    files = Files([str(folder / f"{name}.source")], [str(folder / f"{name}.target")], **options)  # type: ignore[arg-type]
    return Chunks(files, schema.Filters())


@pytest.fixture
def mixed(tmp_path: Path) -> MixedChunks:
    return MixedChunks(
        {
            "first": chunks(tmp_path, "a", ["one", "", "two"], prefix="do this: "),
            "second": chunks(tmp_path, "b", ["three"], prefix="do that: "),
        }
    )


@pytest.fixture
def store(mixed: MixedChunks, tmp_path: Path) -> Store:
    words = Tokenizer.train(["do this: that: one two three"], kind="word", size=50)
    encoders = {"source": words, "target": words, PART: LabelCodes(list(mixed.parts))}
    return cached_store(tmp_path / "cache", "store", lambda directory: write_files(directory, mixed, encoders))


def test_the_texts_of_all_parts_have_their_prefixes_and_are_counted_once_per_pass(mixed: MixedChunks) -> None:
    for _ in range(2):
        sides = [(chunk.texts["source"], chunk.texts[PART]) for chunk in mixed]
        found = [row for texts, parts in sides for row in zip(texts, parts, strict=True)]
        assert found == [("do this: one", "first"), ("do this: two", "first"), ("do that: three", "second")]
        assert (mixed.counts.kept, mixed.counts.dropped) == (3, {"empty": 1})


def test_every_row_of_a_store_knows_its_part_and_its_place(store: Store, tmp_path: Path) -> None:
    assert store.rows(PART, np.arange(3)).tokens.tolist() == [0, 0, 1]
    places = [store.place(number) for number in store.line_numbers(np.arange(3)).tolist()]
    assert places == [
        (str(tmp_path / name), line) for name, line in [("a.source", 1), ("a.source", 3), ("b.source", 1)]
    ]


def test_a_weight_says_how_often_an_epoch_has_each_row() -> None:
    parts = np.repeat([0, 1, 2], [40, 10, 7])
    mixing = Mixing(parts, [0.5, 3.0, 1.0], seed=5)
    seen: Counter[int] = Counter()
    for epoch in range(6):
        rows = mixing.rows(epoch)
        assert np.bincount(parts[rows]).tolist() == [20, 30, 7]
        assert set(Counter(rows[parts[rows] == 1].tolist()).values()) == {3}
        seen.update(rows.tolist())
    # After six epochs all rows of a part were seen equally often.
    assert [{seen[row] for row in np.flatnonzero(parts == part)} for part in range(3)] == [{3}, {18}, {6}]


def test_shares_that_do_not_fit_into_an_epoch_come_out_in_the_long_run() -> None:
    mixing = Mixing(np.zeros(7, dtype=int), [0.3], seed=1)
    seen = Counter(row for epoch in range(100) for row in mixing.rows(epoch).tolist())
    assert sum(seen.values()) == 210
    assert max(seen.values()) - min(seen.values()) <= 1


def test_what_an_epoch_has_is_a_function_of_seed_and_epoch_alone() -> None:
    parts = np.repeat([0, 1], [30, 30])
    first, second = Mixing(parts, [0.4, 1.7], seed=3), Mixing(parts, [0.4, 1.7], seed=3)
    assert first.rows(9).tolist() == second.rows(9).tolist()  # whichever epochs were asked for before
    assert [first.rows(epoch).tolist() for epoch in range(3)] == [second.rows(epoch).tolist() for epoch in range(3)]
    assert Mixing(parts, [0.4, 1.7], seed=4).rows(9).tolist() != first.rows(9).tolist()


def test_batches_mix_the_parts_by_weight_and_validation_has_every_row_once(store: Store) -> None:
    batches = PairBatches(store, 100, seed=1, weights=[2.0, 5.0])
    lines = [line for index in range(batches.count(0)) for line in batches.make(Cursor(0, index)).lines.tolist()]
    assert Counter(lines) == {1: 2, 3: 2, 4: 5}
    fixed = PairBatches(store, 100, shuffle=False, weights=[2.0, 5.0])
    lines = [line for index in range(fixed.count(0)) for line in fixed.make(Cursor(0, index)).lines.tolist()]
    assert sorted(lines) == [1, 3, 4]


def test_no_sentence_that_is_held_out_is_trained_on_in_the_other_direction(tmp_path: Path) -> None:
    left, right = [f"left {n}" for n in range(400)], [f"right {n}" for n in range(400)]

    def direction(name: str, source: list[str], target: list[str], part: str) -> set[frozenset[str]]:
        for side, lines in (("source", source), ("target", target)):
            (tmp_path / f"{name}.{side}").write_text("".join(f"{line}\n" for line in lines))
        files = Files(
            [str(tmp_path / f"{name}.source")], [str(tmp_path / f"{name}.target")], part=part, share=0.2,  # type: ignore[arg-type]
            either_side=True, prefix=f"{name}: ",
        )  # fmt: skip
        rows = Chunks(files, schema.Filters())
        return {
            frozenset((source.removeprefix(f"{name}: "), target))
            for chunk in rows
            for source, target in zip(chunk.texts["source"], chunk.texts["target"], strict=True)
        }

    held, trained = (
        direction("there", left, right, part) | direction("back", right, left, part)
        for part in ("validation", "training")
    )
    assert len(held) > 80
    assert len(trained) > 200
    assert not held & trained
