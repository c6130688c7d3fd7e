"""Batches of recordings."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sounds import noise, save

from headwise.config.families.whisper import WhisperSettings
from headwise.config.schema import Filters
from headwise.config.schema import Tokenizer as TokenizerSettings
from headwise.config.sound import Sound
from headwise.data.cursor import Cursor, walk
from headwise.data.feature_store import FeatureStore, write_features
from headwise.data.recordings import RecordingFiles, Recordings
from headwise.data.sound_batches import SoundBatches, sound_batch
from headwise.text.ragged import Ragged
from headwise.text.tokenizer import Tokenizer

SETTINGS = WhisperSettings.of({"source_positions": 100, "padding": 10, "mels": 8})
WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> FeatureStore:
    folder = tmp_path_factory.mktemp("store")
    tokenizer = Tokenizer.train(list(WORDS) * 3, TokenizerSettings(kind="char", size=290))
    for number, _ in enumerate(WORDS):
        save(folder / f"{number}.wav", noise(0.3 + 0.2 * number, seed=number))
    rows = "".join(f"{number}.wav,{word}\n" for number, word in enumerate(WORDS))
    (folder / "metadata.csv").write_text(f"file_name,transcription\n{rows}")
    stream = Recordings(RecordingFiles((str(folder / "metadata.csv"),)), Filters())
    (folder / "store").mkdir()
    write_features(folder / "store", stream, tokenizer, 8, SETTINGS.window, {})
    return FeatureStore(folder / "store")


def batches(store: FeatureStore, **changes: object) -> SoundBatches:
    options = {"padded": SETTINGS.padded, "longest": 30, **changes}
    return SoundBatches(store, 200, 1, **options)  # type: ignore[arg-type]


def test_an_epoch_has_every_recording_once_padded_with_silence(store: FeatureStore) -> None:
    made = batches(store)
    seen = []
    for batch, _ in walk(made, epochs=1):
        sounds, ids = batch.inputs
        assert sounds.size(1) % 20 == 0
        assert sounds.size(0) * sounds.size(1) // 2 <= 200
        assert ids[:, 0].tolist() == [2] * len(batch)
        for row, line in enumerate(batch.lines):
            own = store.features(int(line) - 2)
            assert torch.equal(sounds[row, : len(own)], torch.from_numpy(own))
            assert bool((sounds[row, len(own) :] == sounds[row].max() - 2).all())
        seen += batch.lines.tolist()
    assert sorted(seen) == list(range(2, 10))


def test_a_prompt_is_read_and_not_learned() -> None:
    texts = Ragged.of([[10, 11], [12]])
    features = [np.ones((7, 3), np.float32)] * 2
    batch = sound_batch(features, 20, texts, (2, 20, 21))
    assert batch.inputs[1].tolist() == [[2, 20, 21, 10, 11], [2, 20, 21, 12, 0]]
    assert batch.targets.tolist() == [[0, 0, 10, 11, 3], [0, 0, 12, 3, 0]]
    assert batch.tokens == 5
    assert [part.inputs[0].shape for part in batch.split(2)] == [(1, 20, 3)] * 2
    assert batch.split(2)[1].targets.tolist() == [[0, 0, 12, 3]]
    assert sound_batch([], 20, Ragged.of([]), (2, 20)).inputs[0].shape[:2] == (0, 20)


def test_variations_are_reproducible_and_differ_between_epochs(store: FeatureStore) -> None:
    varied = batches(store, variation=Sound())
    first, again = (varied.make(Cursor(3, 1)).inputs[0] for _ in range(2))
    assert torch.equal(first, again)
    sounds = {}
    for epoch in (0, 1):
        for batch, _ in walk(varied, Cursor(epoch, 0), epoch + 1):
            sounds |= {(epoch, int(line)): batch.inputs[0][row] for row, line in enumerate(batch.lines)}
    for line in range(2, 10):
        one, other = sounds[0, line], sounds[1, line]
        assert one.shape != other.shape or not torch.equal(one, other)
    plain = batches(store).make(Cursor(3, 1)).inputs[0]
    assert plain.shape != first.shape or not torch.equal(plain, first)


@pytest.mark.parametrize("world", [2, 3])
def test_shares_of_ranks_are_the_rows_of_the_whole_batch(store: FeatureStore, world: int) -> None:
    whole = batches(store, variation=Sound())
    shares = [batches(store, variation=Sound(), rank=rank, world=world) for rank in range(world)]
    for index in range(whole.count(0)):
        expected = whole.make(Cursor(0, index)).inputs[0]
        found = [share.make(Cursor(0, index)).inputs[0] for share in shares]
        assert torch.equal(torch.cat([part for part in found if len(part)]), expected)


def test_texts_that_do_not_fit_are_left_out_and_counted(store: FeatureStore) -> None:
    made = batches(store, longest=5)
    assert made.dropped == 3  # three, seven, eight with begin of sentence
    assert sum(len(batch) for batch, _ in walk(made, epochs=1)) == 5


def test_validation_is_the_same_in_every_epoch(store: FeatureStore) -> None:
    fixed = batches(store, shuffle=False)
    assert [fixed.make(Cursor(0, i)).lines.tolist() for i in range(fixed.count(0))] == [
        fixed.make(Cursor(7, i)).lines.tolist() for i in range(fixed.count(7))
    ]


def test_short_recordings_come_first_if_asked_for_and_then_all(store: FeatureStore) -> None:
    made = batches(store, variation=Sound(short_first=2))
    heard = [
        sorted(line for batch, _ in walk(made, Cursor(epoch, 0), epoch + 1) for line in batch.lines.tolist())
        for epoch in range(4)
    ]
    assert heard == [[2, 3, 4], [2, 3, 4, 5, 6, 7], list(range(2, 10)), list(range(2, 10))]
    assert made.make(Cursor(1, 0)).lines.tolist() == made.make(Cursor(1, 0)).lines.tolist()
    assert batches(store, variation=Sound(short_first=2), shuffle=False).count(0) == batches(
        store, shuffle=False
    ).count(0)
