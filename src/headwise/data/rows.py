"""Streams the rows of tables in chunks: filtered, split into parts, and counted exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from headwise.config.schema import Filters
from headwise.data.chunks import Chunk
from headwise.data.split import Part, stratified, text_hash
from headwise.errors import DataError
from headwise.text.filters import FilterCounts, row_filter
from headwise.text.ragged import Ragged
from headwise.text.tables import TableBatch, read_table_batches

LABEL = "label"


@dataclass(frozen=True)
class Table:
    """The files of a table, the columns that are read, and what they are: text, perhaps a second one, a label."""

    files: tuple[str, ...]
    columns: tuple[str, ...]
    sides: tuple[str, ...]
    format: str = "auto"
    part: Part | None = None  # only this part of a table that is split; None: all of it
    held_out: frozenset[int] = frozenset()  # hashes of the texts of its validation part

    def batches(self) -> Iterator[TableBatch]:
        return read_table_batches(self.files, self.columns, format=self.format)

    def split(self, share: float) -> tuple[Table, Table]:
        """The training and the validation part; each label has its share of both. Reads the table once."""
        texts: list[str] = []
        labels: list[str] = []
        place = self.sides.index(LABEL) if LABEL in self.sides else None
        for batch in self.batches():
            texts += [_key(row, place) for row in batch.rows]
            labels += ["" if place is None else row[place] for row in batch.rows]
        held_out = stratified(texts, labels, share)
        return replace(self, part="training", held_out=held_out), replace(self, part="validation", held_out=held_out)


class TableRows:
    """Streams a table any number of times, like `Chunks` a corpus; `counts` and `files` describe the latest pass.

    A label that is not one of `labels` is an error: it was not learned, so it cannot be right.
    """

    def __init__(self, table: Table, filters: Filters, labels: Sequence[str] | None = None) -> None:
        self.table, self.filters, self.labels = table, filters, None if labels is None else set(labels)
        self.sides = table.sides
        self.counts = FilterCounts()
        self.files: list[tuple[str, int]] = []  # each file and how many lines it has
        self._label = self.sides.index(LABEL) if LABEL in self.sides else None

    def __iter__(self) -> Iterator[Chunk]:
        self.counts, self.files = FilterCounts(), []
        drop = row_filter(self.filters)
        before = 0  # lines of the files before this one
        for batch in self.table.batches():
            if not self.files or self.files[-1][0] != batch.file:
                before = sum(lines for _, lines in self.files)
                self.files.append((batch.file, 0))
            self.files[-1] = (batch.file, batch.end)
            reasons = [self._of_part(row) or drop(row) for row in batch.rows]
            for reason in reasons:
                self.counts.add(reason)
            kept = [place for place, reason in enumerate(reasons) if reason is None]
            self._check_labels(batch, kept)
            texts = {side: [batch.rows[i][number] for i in kept] for number, side in enumerate(self.sides)}
            yield Chunk(texts, np.array([before + batch.lines[i] for i in kept], dtype=np.int64))

    @property
    def text_sides(self) -> tuple[str, ...]:
        return tuple(side for side in self.sides if side != LABEL)

    @property
    def names(self) -> list[str]:
        return list(self.table.files)

    @property
    def reading(self) -> list[object]:
        part = [self.table.part, sorted(self.table.held_out)] if self.table.part else []
        return [self.table.format, self.table.columns, self.sides, self.filters.model_dump(mode="json"), *part]

    def _of_part(self, row: tuple[str, ...]) -> str | None:
        """The name of the other part where the row is of that one."""
        if self.table.part is None:
            return None
        part: Part = "validation" if text_hash(_key(row, self._label)) in self.table.held_out else "training"
        return None if part == self.table.part else part

    def _check_labels(self, batch: TableBatch, kept: list[int]) -> None:
        if self.labels is None or self._label is None:
            return
        for place in kept:
            label = batch.rows[place][self._label]
            if label not in self.labels:
                raise DataError(
                    f"the label '{label}' does not occur in the training table; fix it, or add rows with it there",
                    file=batch.file, line=batch.lines[place],
                )  # fmt: skip


class LabelCodes:
    """Encodes labels as the one side of a token store that has a single number per row."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.size = len(labels)
        self._codes = {label: number for number, label in enumerate(labels)}

    def encode_ragged(self, texts: Sequence[str]) -> Ragged:
        return Ragged(np.array([self._codes[text] for text in texts], dtype=np.int64), np.ones(len(texts), np.int64))


def ordered(labels: Sequence[str]) -> tuple[str, ...]:
    """Each label once: numbers by their value, names by the alphabet."""
    distinct = set(labels)
    if all(label.isdecimal() for label in distinct):
        return tuple(sorted(distinct, key=lambda label: (int(label), label)))
    return tuple(sorted(distinct))


def _key(row: tuple[str, ...], label: int | None) -> str:
    """What must not stand in both parts: the texts of a row."""
    return "\n".join(cell for number, cell in enumerate(row) if number != label)
