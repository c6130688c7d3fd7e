"""Span corruption, by which T5 is pretrained: stretches of a text are hidden, and a decoder writes what was there.

    Thank you for inviting me to your party last week .
    source:   Thank you <extra_id_0> me to your party <extra_id_1> week .
    target:   <extra_id_0> for inviting <extra_id_1> last

Of n tokens round(share · n) are hidden, at least 1 and at most n - 1, in round(hidden / mean) spans, at least 1. How
the hidden tokens are divided among the spans, and the others among the stretches around them, is drawn from all
divisions with equal chances (Raffel et al. 2020, section 3.1.4, and `random_spans_noise_mask` of their code). The text
begins with a stretch that is seen, and may end with one: theirs always ends with a span, which is nothing among 512
tokens, but in a sentence with a single span would hide its end every time. The draw is a pure function of seed, epoch
and the place of the sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headwise.data.batch import Batch
from headwise.data.cursor import Cursor, share_of
from headwise.data.masked import cut_rows
from headwise.data.pairs import pair_batch
from headwise.data.plan import Plan, Planner
from headwise.data.store import Store
from headwise.errors import DataError
from headwise.image.random_numbers import uniforms
from headwise.text.ragged import Ragged

LONGEST = 512  # tokens of text that are corrupted together, as in the original
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Corruption:
    """How texts are corrupted. `sentinels` are the ids that stand for the first span, the second one, …"""

    sentinels: tuple[int, ...]
    seed: int = 0
    share: float = 0.15
    mean: float = 3.0

    def counts(self, lengths: Ints) -> tuple[Ints, Ints]:
        """How many tokens of texts of these lengths, 2 or more each, are hidden, and in how many spans."""
        hidden = np.clip(np.rint(self.share * lengths).astype(np.int64), 1, lengths - 1)
        most = np.minimum(lengths - hidden, len(self.sentinels))  # each span has something before it, and a sentinel
        return hidden, np.clip(np.rint(hidden / self.mean).astype(np.int64), 1, np.minimum(most, hidden))

    def sizes(self, lengths: Ints) -> tuple[Ints, Ints]:
        """The lengths of source and target, which do not depend on the draw."""
        hidden, spans = self.counts(lengths)
        return lengths - hidden + spans, hidden + spans

    def corrupt(self, texts: Ragged, places: Ints, epoch: int) -> tuple[Ragged, Ragged]:
        """Source and target of each text; `places` tells apart where in the corpus they begin."""
        lengths = np.asarray(texts.lengths, dtype=np.int64)
        draws = uniforms(self.seed, epoch, places, int(lengths.max(initial=0)))
        found = [
            self._one(np.array(tokens), hidden, spans, draw)
            for tokens, hidden, spans, draw in zip(texts.sentences(), *self.counts(lengths), draws, strict=True)
        ]
        return Ragged.of([source for source, _ in found]), Ragged.of([target for _, target in found])

    def _one(self, tokens: Ints, hidden: int, spans: int, draw: NDArray[np.float64]) -> tuple[list[int], list[int]]:
        seen = len(tokens) - hidden
        *around, last = _divided(draw[:seen], spans + 1).tolist()  # of one more token than there are: `last` may be 0
        within = _divided(draw[seen : len(tokens) - 1], spans).tolist()
        stretches = [length for pair in zip(around, within, strict=True) for length in pair]
        noise = np.repeat([*[False, True] * spans, False], [*stretches, last - 1])
        end = len(tokens) - (last - 1)
        return self._replaced(tokens, noise), self._replaced(tokens[:end], ~noise[:end])

    def _replaced(self, tokens: Ints, away: NDArray[np.bool_]) -> list[int]:
        """The tokens with one sentinel for each stretch that is taken away."""
        begins = away & ~np.concatenate(([False], away[:-1]))
        names = np.array(self.sentinels)[np.maximum(np.cumsum(begins) - 1, 0)]
        kept: list[int] = np.where(begins, names, tokens)[begins | ~away].tolist()
        return kept


def _divided(draws: NDArray[np.float64], parts: int) -> Ints:
    """Divides len(draws) + 1 items into parts of one or more: cuts are where draws are smallest."""
    cuts = np.sort(np.argsort(draws, kind="stable")[: parts - 1]) + 1
    return np.diff(np.concatenate(([0], cuts, [len(draws) + 1])))


def restored(source: Sequence[int], target: Sequence[int], sentinels: Sequence[int]) -> list[int]:
    """Puts the spans of a target where the sentinels of its source are."""
    spans = split_spans(target, sentinels)
    return [token for one in source for token in (spans.get(one, []) if one in sentinels else [one])]


def split_spans(target: Sequence[int], sentinels: Sequence[int]) -> dict[int, list[int]]:
    """The tokens after each sentinel, by the sentinel; what stands before the first one belongs to none."""
    spans: dict[int, list[int]] = {}
    current: list[int] = []
    for token in target:
        if token in sentinels:
            current = spans.setdefault(token, []) if token not in spans else []
        else:
            current.append(token)
    return spans


class SpanBatches:
    """Corrupted lines of a text as sentence pairs, of similar length together; long lines are cut in pieces.

    Of several ranks each gets its share of every batch. Without `shuffle` (validation) what is hidden is the same each
    time. Lines of a single token are left out.
    """

    def __init__(
        self, store: Store, batch_tokens: int, corruption: Corruption, *, longest: int | None = None,
        shuffle: bool = True, rank: int = 0, world: int = 1,
    ) -> None:  # fmt: skip
        self.store, self.corruption, self.shuffle, self.rank, self.world = store, corruption, shuffle, rank, world
        (self.side,) = store.sides
        room = min(LONGEST, batch_tokens - 1, (longest or LONGEST + 1) - 1)
        cut = cut_rows(store.lengths(self.side).astype(np.int64), room)
        self.rows, self.starts, self.lengths = (part[cut[2] > 1] for part in cut)
        if not len(self.rows):
            raise DataError("there is no text left to train on: a gap needs lines of two tokens or more")
        source, target = corruption.sizes(self.lengths)
        self.planner = Planner(source, target, batch_tokens, corruption.seed, longest)
        self._planned: tuple[int, Plan] | None = None

    @property
    def dropped(self) -> int:
        return self.planner.dropped

    def count(self, epoch: int) -> int:
        return len(self._plan(epoch))

    def make(self, cursor: Cursor) -> Batch:
        pieces = share_of(self._plan(cursor.epoch).rows(cursor.index), self.rank, self.world)
        rows, starts = self.rows[pieces], self.starts[pieces]
        text = self.store.parts(self.side, rows, starts, self.lengths[pieces])
        places = self.store.offsets(self.side, rows) + starts
        source, target = self.corruption.corrupt(text, places, cursor.epoch if self.shuffle else 0)
        return pair_batch(source, target, self.store.line_numbers(rows), cursor.index)

    def _plan(self, epoch: int) -> Plan:
        if not self.shuffle:
            epoch = 0
        if self._planned is None or self._planned[0] != epoch:
            self._planned = (epoch, self.planner.plan(epoch) if self.shuffle else self.planner.fixed())
        return self._planned[1]
