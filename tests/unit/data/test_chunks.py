"""Chunks of a corpus: exact counts, and an even sample of a large corpus."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from headwise.config import schema
from headwise.data.chunks import Chunks, Files, sample


def text(folder: Path, lines: list[str]) -> Chunks:
    (folder / "text").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return Chunks(Files(text=[str(folder / "text")]), schema.Filters())


def test_a_corpus_can_be_read_again_with_the_same_counts(tmp_path: Path) -> None:
    chunks = text(tmp_path, ["one", "\x00", "", "two"])
    for _ in range(2):
        (chunk,) = chunks
        assert chunk.texts == {"text": ["one", "", "two"]}
        assert chunk.lines.tolist() == [1, 3, 4]
        assert (chunks.counts.kept, chunks.counts.dropped) == (3, {"control": 1})
        assert chunks.files == [(str(tmp_path / "text"), 4)]


def test_a_tsv_file_holds_both_sides(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("a\tx\nb\ty\n", encoding="utf-8")
    (chunk,) = Chunks(Files(source=[str(tmp_path / "pairs.tsv")]), schema.Filters())
    assert chunk.texts == {"source": ["a", "b"], "target": ["x", "y"]}


def test_all_of_a_small_corpus_is_sampled(tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(100)]
    assert sample(text(tmp_path, lines), 10_000) == {"text": lines}


def test_a_large_corpus_is_sampled_evenly_and_within_the_bound(tmp_path: Path) -> None:
    lines = [f"{number:08}" for number in range(20_000)]
    taken = sample(text(tmp_path, lines), 8 * 1000)["text"]
    assert 500 < len(taken) <= 1000
    steps = {int(after) - int(before) for before, after in pairwise(taken)}
    assert steps == {32}


def test_both_sides_of_a_sample_come_from_the_same_lines(tmp_path: Path) -> None:
    for side in ("en", "de"):
        (tmp_path / side).write_text("".join(f"{number}\n" for number in range(5000)), encoding="utf-8")
    taken = sample(Chunks(Files(source=[str(tmp_path / "en")], target=[str(tmp_path / "de")]), schema.Filters()), 3000)
    assert taken["source"] == taken["target"]
    assert 0 < len(taken["source"]) < 500
