"""Batches of recordings: features padded with silence, and their texts, by a budget of positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from headwise.config.sound import Sound
from headwise.data.batch import Batch, pad
from headwise.data.cursor import Cursor, share_of
from headwise.data.feature_store import SIDE, FeatureStore
from headwise.data.plan import Plan, Planner
from headwise.sound.augment import augment, varied_frames
from headwise.sound.features import Features, pad_features
from headwise.text.ragged import Ragged
from headwise.text.tokenizer import BOS, EOS, PAD

Ints = NDArray[np.integer]
LEFT_OUT = np.iinfo(np.int32).max  # positions that fit no batch
FIRST_SHARE = 1 / 3  # of the recordings, the shortest: what the first epoch has, where short ones come first


def sound_batch(
    features: Sequence[Features], width: int, texts: Ragged, prompt: Sequence[int] = (BOS,),
    lines: Ints | None = None, index: int = 0,
) -> Batch:  # fmt: skip
    """The network reads sounds of `width` frames and the prompt with the text so far, and is to say the text.

    What comes before the text is given, so it is not learned: no target stands there.
    """
    rows = [pad_features(one, width) for one in features]
    mels = features[0].shape[1] if len(features) else 1
    sounds = torch.from_numpy(np.stack(rows)) if rows else torch.zeros(0, width, mels)
    begun, said = pad(texts, start=prompt[-1]), pad(texts, end=EOS)
    before = torch.tensor([prompt[:-1]], dtype=torch.long).expand(len(begun), -1)
    inputs, targets = torch.cat((before, begun), dim=1), torch.cat((torch.full_like(before, PAD), said), dim=1)
    widths = np.asarray(texts.lengths, dtype=np.int64) + len(prompt)
    # Every share of a batch has the same silence after its sounds, so that what is learned does not depend on shares.
    return Batch.of((sounds, inputs), targets, lines, index, (None, widths, widths))


class SoundBatches:
    """Batches of recordings from a store; of several ranks each gets its share of every batch.

    `padded` says how many frames a sound of so many is padded to. With `variation` an epoch has its own variation of
    each recording, a pure function of (seed, epoch, recording).
    """

    def __init__(
        self,
        store: FeatureStore,
        batch_tokens: int,
        seed: int = 0,
        *,
        padded: Callable[[int], int],
        longest: int,
        prompt: Sequence[int] = (BOS,),
        variation: Sound | None = None,
        shuffle: bool = True,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        self.store, self.seed, self.padded, self.prompt = store, seed, padded, tuple(prompt)
        self.variation, self.shuffle, self.rank, self.world = variation, shuffle, rank, world
        self.frames, texts = store.frames(), store.lengths(SIDE)
        positions = np.array([padded(int(count)) // 2 - 1 for count in self.frames], dtype=np.int64)
        # A text that does not fit the decoder is left out, like a sound that does not fit a batch.
        too_long = texts.astype(np.int64) + len(self.prompt) > longest
        positions[too_long] = LEFT_OUT
        self.planner = Planner(positions, texts, batch_tokens, seed)
        self._positions, self._texts, self._budget = positions, texts, batch_tokens
        self._planned: tuple[int, Plan] | None = None

    @property
    def dropped(self) -> int:
        """Recordings that are longer than a batch, or whose text is longer than the model may take."""
        return self.planner.dropped

    def count(self, epoch: int) -> int:
        return len(self._plan(epoch))

    def make(self, cursor: Cursor) -> Batch:
        every = self._plan(cursor.epoch).rows(cursor.index)
        width = self.padded(max(self._frames(cursor.epoch, int(row)) for row in every))
        rows = share_of(every, self.rank, self.world)
        features = [self._features(cursor.epoch, int(row)) for row in rows]
        texts = self.store.rows(SIDE, rows)
        return sound_batch(features, width, texts, self.prompt, self.store.line_numbers(rows), cursor.index)

    def _frames(self, epoch: int, row: int) -> int:
        frames = int(self.frames[row])
        return frames if self.variation is None else varied_frames(frames, self.variation, self.seed, epoch, row)

    def _features(self, epoch: int, row: int) -> Features:
        features = self.store.features(row)
        return features if self.variation is None else augment(features, self.variation, self.seed, epoch, row)

    def _plan(self, epoch: int) -> Plan:
        epoch = epoch if self.shuffle else 0
        if self._planned is None or self._planned[0] != epoch:
            self._planned = (epoch, self._planner(epoch).plan(epoch) if self.shuffle else self.planner.fixed())
        return self._planned[1]

    def _planner(self, epoch: int) -> Planner:
        """Early epochs leave long recordings out, as far as `short_first` says."""
        ramp = 0 if self.variation is None else self.variation.short_first
        if epoch >= ramp:
            return self.planner
        share = FIRST_SHARE + (1 - FIRST_SHARE) * epoch / ramp
        longest = np.quantile(self.frames, share, method="inverted_cdf")
        return Planner(
            np.where(self.frames <= longest, self._positions, LEFT_OUT), self._texts, self._budget, self.seed
        )
