from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_pictures import write_folder

from headwise.data.cursor import Cursor, walk
from headwise.data.pictures import open_source
from headwise.data.pixel_batches import NO_LABEL, PixelBatches
from headwise.data.pixel_store import PixelStore, write_pixels
from headwise.image.augmentation import Augmentation
from headwise.image.preprocessing import Preprocessing

HOW = Preprocessing(size=8, mean=[0.5] * 3, std=[0.5] * 3)
EVERYTHING = Augmentation(flip=True, shift=1, operations=2, erase=0.3, mixup=0.3, cutmix=1.0)


@pytest.fixture
def store(tmp_path: Path) -> PixelStore:
    write_folder(tmp_path / "data", {"cat": 6, "dog": 5}, size=8)
    source = open_source([str(tmp_path / "data")])
    (tmp_path / "store").mkdir()
    write_pixels(tmp_path / "store", source.pictures(HOW.fitted), {"cat": 0, "dog": 1}, (8, 8, 3), {})
    return PixelStore(tmp_path / "store")


def batches(store: PixelStore, **options: Any) -> PixelBatches:
    return PixelBatches(store, 4, HOW, 2, seed=3, **options)


def test_an_epoch_has_every_picture_once_in_an_order_of_its_own(store: PixelStore) -> None:
    made = batches(store)
    orders = []
    for epoch in (0, 1):
        epoch_batches = [made.make(Cursor(epoch, index)) for index in range(made.count(epoch))]
        assert [len(batch) for batch in epoch_batches] == [4, 4, 3]
        orders.append([line for batch in epoch_batches for line in batch.lines.tolist()])
        assert sorted(orders[-1]) == list(range(1, 12))
    assert orders[0] != orders[1]


def test_inputs_are_normalised_pixels_and_targets_labels(store: PixelStore) -> None:
    batch = batches(store, shuffle=False).make(Cursor(0, 1))
    assert batch.lines.tolist() == [5, 6, 7, 8]
    assert torch.equal(batch.inputs[0], torch.from_numpy(HOW.normalised(store.pixels(np.arange(4, 8)))))
    assert batch.targets.tolist() == [0, 0, 1, 1]
    assert (batch.tokens, batch.ignore) == (4, NO_LABEL)


def test_validation_is_never_augmented(store: PixelStore) -> None:
    plain, told = batches(store, shuffle=False), batches(store, shuffle=False, augmentation=EVERYTHING)
    for index in range(3):
        one, other = plain.make(Cursor(5, index)), told.make(Cursor(9, index))
        assert torch.equal(one.inputs[0], other.inputs[0])
        assert torch.equal(one.targets, other.targets)


def test_a_batch_made_after_a_resume_is_the_same_to_the_bit(store: PixelStore) -> None:
    """Augmentation and mixing need nothing but the cursor."""
    run = batches(store, augmentation=EVERYTHING)
    whole = [batch for batch, _ in walk(run, epochs=3)]
    resumed = [batch for batch, _ in walk(batches(store, augmentation=EVERYTHING), Cursor(1, 2), epochs=3)]
    assert len(resumed) == 4
    for one, other in zip(whole[5:], resumed, strict=True):
        assert torch.equal(one.inputs[0], other.inputs[0])
        assert torch.equal(one.targets, other.targets)
    assert not torch.equal(whole[0].inputs[0], whole[3].inputs[0])


def test_ranks_share_a_batch_and_augment_as_one_process_does(store: PixelStore) -> None:
    whole = batches(store, augmentation=EVERYTHING).make(Cursor(2, 1))
    shares = [batches(store, augmentation=EVERYTHING, rank=rank, world=3).make(Cursor(2, 1)) for rank in range(3)]
    assert torch.equal(torch.cat([share.inputs[0] for share in shares]), whole.inputs[0])
    assert torch.equal(torch.cat([share.targets for share in shares]), whole.targets)


def test_mixed_pictures_have_soft_targets(store: PixelStore) -> None:
    batch = batches(store, augmentation=Augmentation(mixup=1.0)).make(Cursor(0, 0))
    assert batch.targets.shape == (4, 2)
    torch.testing.assert_close(batch.targets.sum(dim=1), torch.ones(4))
    assert ((batch.targets > 0.05) & (batch.targets < 0.95)).any()
    assert (batch.tokens, batch.positions) == (4, 4)
    first, second = batch.split(2)
    assert (first.tokens, second.tokens) == (2, 2)
    assert torch.equal(torch.cat((first.targets, second.targets)), batch.targets)
    blank = batch.blank()
    assert blank.inputs[0].shape == (1, 3, 8, 8)
    assert (blank.targets.shape, blank.targets.dtype) == ((1, 2), torch.float32)
