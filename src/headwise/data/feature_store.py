"""The feature store: log-mel features of recordings, and their texts as ids, in memory-mapped files.

    <cache>/<key>/
        features, frames     float16, frames end to end, (frames, mels); recording i is frames[i] to frames[i + 1]
        text.tokens, …       as in a token store (`data/store.py`), which this is as well

Features are not padded: batches append silence. Half precision keeps three decimal places of numbers around 1, which is
far below what one quiet frame differs from the next, and halves what is read per epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headwise.data.cached import HashedFile, StoreDamagedError, cached
from headwise.data.recordings import Recording, Recordings
from headwise.data.store import MANIFEST, Manifest, Store
from headwise.errors import DataError
from headwise.files import sync
from headwise.sound.features import HOP, Features, frames_of, log_mel
from headwise.sound.reading import RATE, TooLong, read_sound
from headwise.text.tokenizer import Tokenizer

SIDE = "text"
SHORTEST = 5  # frames: what is shorter is a click
_MARGIN = 3  # frames after the sound, in which its end still echoes in the features


class FeatureStore(Store):
    """Recordings: their features, and the ids of their texts (the side `text`)."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        try:
            self.mels = int(self.manifest.about["mels"])
            self._features = self._map("features", "float16").reshape(-1, self.mels)
            self._frames = self._map("frames", "int64")
        except (KeyError, ValueError, OSError) as error:
            raise StoreDamagedError(f"{directory}: {error}") from error

    def features(self, row: int) -> Features:
        """The features of a recording, (frames, mels)."""
        found: Features = self._features[self._frames[row] : self._frames[row + 1]].astype(np.float32)
        self._touch(1 + found.nbytes // 2**17)
        return found

    def frames(self) -> NDArray[np.int64]:
        """How many frames each recording has."""
        return np.diff(self._frames)


def cached_features(cache: Path, key: str, write: Callable[[Path], None]) -> FeatureStore:
    """Opens the feature store of this key, or writes it first."""
    return cached(cache, key, write, FeatureStore, "feature store")


def write_features(
    directory: Path,
    recordings: Recordings,
    tokenizer: Tokenizer,
    mels: int,
    window: int,
    about: Mapping[str, Any],
    progress: Callable[[int], None] | None = None,
    on_bad: Callable[[str, DataError], None] | None = None,
) -> None:
    """Computes features and ids of all recordings into `directory`, one recording at a time.

    `window` is the model's, in frames. What is longer, too short or cannot be read is counted by that reason, and
    `on_bad` is told of it.
    """
    names = ("features", "frames", f"{SIDE}.tokens", f"{SIDE}.offsets", "lines")
    kind = "uint16" if tokenizer.size <= 2**16 else "uint32"
    frames, tokens, longest, kept = 0, 0, 0, 0
    dropped: dict[str, int] = {}
    with ExitStack() as stack:
        files = {name: stack.enter_context(HashedFile(directory / name)) for name in names}
        for name in ("frames", f"{SIDE}.offsets"):
            files[name].write(np.zeros(1, dtype=np.int64))
        for done, (number, recording) in enumerate(recordings.numbered(), start=1):
            found = read_features(recording, mels, window)
            if isinstance(found, tuple):
                reason, error = found
                dropped[reason] = dropped.get(reason, 0) + 1
                if on_bad is not None:
                    on_bad(reason, error)
                continue
            ids = np.array(tokenizer.encode(recording.text), dtype=kind)
            frames, tokens, longest, kept = frames + len(found), tokens + len(ids), max(longest, len(ids)), kept + 1
            files["features"].write(found.astype(np.float16))
            files["frames"].write(np.array([frames], dtype=np.int64))
            files[f"{SIDE}.tokens"].write(ids)
            files[f"{SIDE}.offsets"].write(np.array([tokens], dtype=np.int64))
            files["lines"].write(np.array([number], dtype=np.int64))
            if progress is not None and done % 50 == 0:
                progress(done)
        for file in files.values():
            file.finish()
        manifest = Manifest(
            sides={SIDE: kind},
            sentences=kept,
            tokens={SIDE: tokens},
            longest={SIDE: longest},
            files=recordings.files,
            dropped={**recordings.counts.dropped, **dropped},
            sizes={name: file.size for name, file in files.items()},
            hashes={name: file.hash for name, file in files.items()},
            about={**about, "mels": mels, "seconds": round(frames * HOP / RATE, 2)},
        )
    manifest.write(directory / MANIFEST)
    sync(directory / MANIFEST)


def read_features(recording: Recording, mels: int, window: int) -> Features | tuple[str, DataError]:
    """The features of a recording without padding, or why it cannot be learned from."""
    try:
        samples = read_sound(recording.sound, most_seconds=window * HOP / RATE)
    except DataError as error:
        reason = "long" if isinstance(error, TooLong) else "unreadable"
        return reason, DataError(str(error), file=recording.file, line=recording.line)
    frames = frames_of(len(samples))
    if frames < SHORTEST:
        problem = f"{recording.sound} has {len(samples) / RATE:.3f} s of sound, which is too short to hear anything"
        return "short", DataError(problem, file=recording.file, line=recording.line)
    return log_mel(samples, mels, frames=min(window, frames + _MARGIN))
