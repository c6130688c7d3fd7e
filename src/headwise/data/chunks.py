"""Streams a corpus in chunks of a few thousand texts that passed the filters, and counts exactly what was dropped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from headwise.config.schema import Filters
from headwise.data.split import Part, long_hashes, part_of_lines, part_of_pairs
from headwise.text import corpus
from headwise.text.filters import FilterCounts, line_filter, pair_filter


@dataclass(frozen=True)
class Chunk:
    """The texts of each side, and the line number of each row, counted from 1 through all files of the corpus."""

    texts: dict[str, list[str]]
    lines: NDArray[np.int64]


@dataclass(frozen=True)
class Files:
    """The files of a corpus: parallel files (`target` is empty if one file holds both sides), or plain text."""

    source: Sequence[str] = ()
    target: Sequence[str] = ()
    text: Sequence[str] = ()
    format: str = "auto"
    fields: Sequence[str] = ()
    part: Part | None = None  # only this part of a corpus that is split; None: all of it
    share: float = 0.0  # of its lines that are in the validation part
    either_side: bool = False  # nothing is trained on whose source or target is held out: for parts of a mixture
    prefix: str = ""  # before every source

    @property
    def sides(self) -> tuple[str, ...]:
        return ("text",) if self.text else ("source", "target")

    @property
    def all(self) -> list[str]:
        return [*self.source, *self.target, *self.text]


class TextStream(Protocol):
    """Texts that can be read any number of times: lines of a corpus, or rows of a table."""

    sides: tuple[str, ...]

    def __iter__(self) -> Iterator[Chunk]: ...

    @property
    def counts(self) -> FilterCounts:
        """Of the latest pass."""
        ...

    @property
    def files(self) -> list[tuple[str, int]]:
        """Each file and how many lines it has."""
        ...

    @property
    def text_sides(self) -> tuple[str, ...]:
        """The sides that are text."""
        ...

    @property
    def names(self) -> list[str]:
        """All files."""
        ...

    @property
    def reading(self) -> list[object]:
        """Everything besides the files' content that determines the texts."""
        ...


class Chunks:
    """Streams a corpus any number of times; `counts` and `files` describe the latest pass."""

    def __init__(self, files: Files, filters: Filters, languages: Sequence[str] = ()) -> None:
        self.corpus, self.filters, self.languages = files, filters, languages
        self.sides = files.sides
        self.counts = FilterCounts()
        self.files: list[tuple[str, int]] = []  # each file (its source side) and the line of its last text

    def __iter__(self) -> Iterator[Chunk]:
        self.counts, self.files = FilterCounts(), []
        before = 0  # lines of the files before this one
        for file, first_line, texts, reasons in self._read():
            for reason in reasons:
                self.counts.add(reason)
            if not self.files or self.files[-1][0] != file:
                before = sum(lines for _, lines in self.files)
                self.files.append((file, 0))
            self.files[-1] = (file, first_line + len(reasons) - 1)
            first = before + first_line
            kept = np.array([reason is None for reason in reasons], dtype=bool)
            if not kept.all():
                texts = {
                    side: [text for text, keep in zip(lines, kept, strict=True) if keep]
                    for side, lines in texts.items()
                }
            yield Chunk(texts, first + np.flatnonzero(kept))

    @property
    def text_sides(self) -> tuple[str, ...]:
        return self.sides

    @property
    def names(self) -> list[str]:
        return self.corpus.all

    @property
    def reading(self) -> list[object]:
        files = self.corpus
        return [
            files.format,
            list(files.fields),
            self.filters.model_dump(mode="json"),
            *([files.part, files.share] if files.part else []),
            *([files.either_side, files.prefix] if files.either_side or files.prefix else []),
            list(self.languages),
            self.sides,
        ]

    def _read(self) -> Iterator[tuple[str, int, dict[str, list[str]], list[str | None]]]:
        """Yields batches of lines: file, first line, texts of each side, and why each is dropped (None: it is kept)."""
        if self.sides == ("text",):
            drop_line = line_filter(self.filters, self.languages)
            field = self.corpus.fields[0] if self.corpus.fields else None
            number = 0
            for lines in corpus.read_line_batches(self.corpus.text, format=self.corpus.format, field=field):
                reasons = [drop_line(text) for text in lines.texts]
                yield lines.file, lines.first, {"text": lines.texts}, self._of_part(reasons, lines.texts, number)
                number += len(lines.texts)
            return
        drop_pair = pair_filter(self.filters, self.languages)
        pairs = corpus.read_pair_batches(
            self.corpus.source, self.corpus.target, format=self.corpus.format, fields=self.corpus.fields
        )
        for batch in pairs:
            reasons = [drop_pair(source, target) for source, target in zip(batch.sources, batch.targets, strict=True)]
            texts = {"source": _with_prefixes(batch, self.corpus.prefix), "target": batch.targets}
            targets = batch.targets if self.corpus.either_side else ()
            yield batch.file, batch.first, texts, self._of_part(reasons, batch.sources, 0, targets)

    @cached_property
    def _held_out(self) -> frozenset[int | None]:
        """Hashes of the long lines in the validation part of a running text: copies of them are not trained on."""
        field, number, found = self.corpus.fields[0] if self.corpus.fields else None, 0, set[int | None]()
        for lines in corpus.read_line_batches(self.corpus.text, format=self.corpus.format, field=field):
            parts = part_of_lines(number, len(lines.texts), self.corpus.share)
            found.update(long_hashes([t for t, part in zip(lines.texts, parts, strict=True) if part == "validation"]))
            number += len(lines.texts)
        return frozenset(found - {None})

    def _of_part(
        self, reasons: list[str | None], texts: Sequence[str], first: int, targets: Sequence[str] = ()
    ) -> list[str | None]:
        """The reasons, and `validation` or `training` for lines of the other part."""
        if self.corpus.part is None:
            return reasons
        share = self.corpus.share
        running = self.sides == ("text",)
        parts = part_of_lines(first, len(texts), share) if running else part_of_pairs(texts, share)
        if running and self.corpus.part == "training":
            copies = [number in self._held_out for number in long_hashes(texts)]
            parts = ["validation" if copy else part for part, copy in zip(parts, copies, strict=True)]
        if targets and self.corpus.part == "training":
            others = part_of_pairs(targets, share)
            parts = ["validation" if "validation" in both else "training" for both in zip(parts, others, strict=True)]
        return [reason if part == self.corpus.part else part for reason, part in zip(reasons, parts, strict=True)]


def _with_prefixes(batch: corpus.PairBatch, prefix: str) -> list[str]:
    """The sources as a model reads them. Filters and splits look at the text alone."""
    if batch.prefixes:
        return [own + source for own, source in zip(batch.prefixes, batch.sources, strict=True)]
    return [prefix + source for source in batch.sources] if prefix else batch.sources


def sample(chunks: TextStream, characters: int) -> dict[str, list[str]]:
    """Takes every n-th text of the whole corpus, with n such that the total is at most `characters`."""
    texts: dict[str, list[str]] = {side: [] for side in chunks.text_sides}
    step, held, row = 1, 0, 0
    for chunk in chunks:
        first = -row % step
        row += len(chunk.lines)
        for side in texts:
            taken = chunk.texts[side][first::step]
            texts[side] += taken
            held += sum(map(len, taken))
        while held > characters and any(len(lines) > 1 for lines in texts.values()):
            step *= 2
            texts = {side: lines[::2] for side, lines in texts.items()}
            held = sum(len(text) for lines in texts.values() for text in lines)
    return texts
