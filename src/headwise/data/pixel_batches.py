"""Batches of pictures from a pixel store: shuffled, augmented, normalised; with mixed pictures the targets are soft.

Which pictures form a batch, how each is augmented and what it is mixed with is a pure function of (seed, epoch): any
batch of any epoch can be made directly, on any rank.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from headwise.data.batch import Batch
from headwise.data.cursor import Cursor, share_of
from headwise.data.pixel_store import PixelStore
from headwise.data.plan import generator
from headwise.image.augmentation import Augmentation, augmented, mixing
from headwise.image.preprocessing import Preprocessing
from headwise.image.reading import Pixels

NO_LABEL = -1  # the `ignore` of batches with labels: class 0 is a class


class PixelBatches:
    """Inputs are pixels (B, channels, size, size); targets are labels (B,), or probabilities (B, classes) if mixed."""

    def __init__(
        self,
        store: PixelStore,
        pictures: int,
        preprocessing: Preprocessing,
        classes: int,
        seed: int = 0,
        *,
        augmentation: Augmentation | None = None,
        shuffle: bool = True,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        self.store, self.pictures, self.preprocessing, self.classes = store, max(1, pictures), preprocessing, classes
        self.seed, self.shuffle, self.rank, self.world = seed, shuffle, rank, world
        self.augmentation = augmentation if shuffle else None
        self._order: tuple[int, NDArray[np.int64]] | None = None

    def count(self, epoch: int) -> int:
        return -(-len(self.store) // self.pictures)

    def make(self, cursor: Cursor) -> Batch:
        start = cursor.index * self.pictures
        chosen = self._order_of(cursor.epoch)[start : start + self.pictures]
        rows = share_of(chosen, self.rank, self.world)
        pixels, targets = self._mixed(rows, cursor.epoch) if self._mixes else self._plain(rows, cursor.epoch)
        inputs = torch.from_numpy(self.preprocessing.normalised(pixels))
        return Batch.of((inputs,), torch.from_numpy(targets), self.store.numbers(rows), cursor.index, ignore=NO_LABEL)

    @property
    def _mixes(self) -> bool:
        return self.augmentation is not None and self.augmentation.mixes

    def _plain(self, rows: NDArray[np.int64], epoch: int) -> tuple[Pixels, NDArray[np.int64]]:
        return self._pixels(rows, epoch), self.store.labels(rows)

    def _mixed(self, rows: NDArray[np.int64], epoch: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        assert self.augmentation is not None
        how = mixing(rows, len(self.store), self.store.size, self.seed, epoch, self.augmentation)
        pixels = how.blend(self._pixels(rows, epoch), self._pixels(how.partners, epoch))
        labels, others = self.store.labels(rows), self.store.labels(how.partners)
        return pixels, _soft(labels, others, how.shares.astype(np.float32), self.classes)

    def _pixels(self, rows: NDArray[np.int64], epoch: int) -> Pixels:
        pixels = self.store.pixels(rows)
        how = self.augmentation
        return pixels if how is None else augmented(pixels, rows, self.seed, epoch, how)

    def _order_of(self, epoch: int) -> NDArray[np.int64]:
        if not self.shuffle:
            return np.arange(len(self.store))
        if self._order is None or self._order[0] != epoch:
            self._order = (epoch, generator(self.seed, epoch, 0).permutation(len(self.store)))
        return self._order[1]


def _soft(
    labels: NDArray[np.int64], others: NDArray[np.int64], shares: NDArray[np.float32], classes: int
) -> NDArray[np.float32]:
    """The probability of each class: (B, classes)."""
    rows = np.arange(len(labels))
    soft = np.zeros((len(labels), classes), dtype=np.float32)
    soft[rows, labels] = shares
    np.add.at(soft, (rows, others), 1 - shares)
    return soft
