"""Reads sound files of any rate and number of channels as mono samples: WAV, FLAC, OGG, MP3 and what libsndfile knows.

Everything streams: a file of ten hours takes no more memory than one of ten seconds. What is wrong with a file gets one
line that names it (docs/transcribe.md lists the verdicts). A file that is cut off is refused, unless the caller asks to
be told (`on_cut`) and takes what is there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headwise.errors import DataError, UsageError
from headwise.files import check_name, opened_file

if TYPE_CHECKING:
    import soundfile

Samples = NDArray[np.float32]
OnCut = Callable[[DataError], None]  # told that a file is cut off, which is then read as far as it goes

RATE = 16_000  # samples per second of what is returned
LOWEST_RATE, HIGHEST_RATE = 1_000, 768_000  # of a file
MOST_CHANNELS = 64
# Samples are between -1 and 1; what is a little louder was amplified, what is far above has another scale.
LOUDEST = 16.0
SUFFIXES = (".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif", ".aiff", ".au", ".caf", ".w64")
# How much is lost where a file is damaged: a block that cannot be read to its end is not returned.
_BLOCK_SECONDS = 1
_BLOCK_SAMPLES = 1 << 20  # of all channels: a file of many channels and a high rate takes no more memory than others
_UNKNOWN_SIZES = {2**31 - 1, 2**32 - 1}  # what a program writes that does not know how much will follow


class TooLong(DataError):
    """A sound is longer than the caller can use."""


@dataclass(frozen=True)
class SoundBytes:
    """A sound file in memory; its name is for messages."""

    content: bytes
    name: str = "the sound"

    def __str__(self) -> str:
        return self.name


SoundFile = str | Path | SoundBytes


@dataclass(frozen=True)
class SoundInfo:
    """What the header of a file says."""

    file: str
    rate: int
    channels: int
    frames: int

    @property
    def seconds(self) -> float:
        return self.frames / self.rate


def sound_info(file: SoundFile) -> SoundInfo:
    """Reads and checks the header; a DataError says what is wrong with it."""
    with _opened(file) as sound:
        return _checked(sound, file)


def read_sound(file: SoundFile, rate: int = RATE, *, most_seconds: float, on_cut: OnCut | None = None) -> Samples:
    """All samples of a file, mono. A file that is longer than `most_seconds` is refused before it is read."""
    seconds = sound_info(file).seconds
    if seconds > most_seconds:
        raise TooLong(f"is {seconds:,.1f} s long, but at most {most_seconds:g} s are read; cut it", file=str(file))
    return np.concatenate(list(sound_blocks(file, rate, on_cut=on_cut)))


def sound_blocks(file: SoundFile, rate: int = RATE, *, on_cut: OnCut | None = None) -> Iterator[Samples]:
    """Yields the samples of a file about a second at a time, mono: the mean of its channels, at `rate`."""
    import soxr

    with _opened(file) as sound:
        info = _checked(sound, file)
        stream = soxr.ResampleStream(info.rate, rate, 1, dtype="float32") if info.rate != rate else None
        for block in _mono_blocks(sound, info, on_cut):
            turned = block if stream is None else stream.resample_chunk(block)
            if len(turned):
                yield turned
        if stream is not None and len(rest := stream.resample_chunk(np.zeros(0, np.float32), last=True)):
            yield rest


def _mono_blocks(sound: soundfile.SoundFile, info: SoundInfo, on_cut: OnCut | None) -> Iterator[Samples]:
    import soundfile

    _report_cut(_lacking(sound, info), on_cut)
    read, size = 0, min(_BLOCK_SECONDS * info.rate, _BLOCK_SAMPLES // info.channels)
    while True:
        try:
            block: Samples = sound.read(size, dtype="float32", always_2d=True)
        except soundfile.LibsndfileError as error:
            # A decoder that fails has lost its place: what follows would be noise.
            _report_cut(_damaged(info, read, str(error.error_string)), on_cut)
            return
        if not len(block):
            break
        mixed: Samples = block[:, 0] if info.channels == 1 else block.mean(axis=1)
        _check_samples(block, mixed, info, read)
        read += len(block)
        yield mixed
    if read == 0:
        raise DataError("has no samples; record it again or leave it out", file=info.file)
    if read < info.frames - info.rate // 10:  # what a header estimates may differ by a frame of the codec
        _report_cut(_damaged(info, read, "it ends early"), on_cut)


def _check_samples(block: Samples, mixed: Samples, info: SoundInfo, before: int) -> None:
    loudest = float(np.abs(block).max())  # NaN if any is
    if loudest <= LOUDEST:
        return
    if not np.isfinite(loudest):
        first = int(np.argmin(np.isfinite(block).all(axis=1)))
        raise DataError(f"has a sample that is NaN or infinite, at {(before + first) / info.rate:.3f} s; "
                        "export it again", file=info.file)  # fmt: skip
    raise DataError(
        f"has samples up to {loudest:g}, but sound is between -1 and 1; divide by the largest, or save whole numbers",
        file=info.file,
    )


def _report_cut(problem: DataError | None, on_cut: OnCut | None) -> None:
    if problem is None:
        return
    if on_cut is None:
        raise problem
    on_cut(problem)


def _damaged(info: SoundInfo, read: int, why: str) -> DataError:
    return DataError(
        f"is cut off or damaged after {read / info.rate:.1f} of {info.seconds:.1f} s ({why.rstrip('.')}); "
        "take another copy of it",
        file=info.file,
    )


def _lacking(sound: soundfile.SoundFile, info: SoundInfo) -> DataError | None:
    """A WAV file whose header promises more than there is; libsndfile notes it and goes on."""
    found = re.search(r"^data : (\d+) \(should be (\d+)\)", sound.extra_info, re.MULTILINE)
    if found is None or int(found[1]) in _UNKNOWN_SIZES or int(found[1]) <= int(found[2]):
        return None
    return DataError(
        f"is cut off: its header promises {int(found[1]):,} bytes of sound, but {int(found[2]):,} are there "
        f"({info.seconds:.1f} s); take another copy of it",
        file=info.file,
    )


def _checked(sound: soundfile.SoundFile, given: SoundFile) -> SoundInfo:
    file = str(given)
    info = SoundInfo(file, sound.samplerate, sound.channels, sound.frames)
    if not LOWEST_RATE <= info.rate <= HIGHEST_RATE:
        raise DataError(
            f"has {info.rate:,} samples per second; Headwise reads {LOWEST_RATE:,} to {HIGHEST_RATE:,}: resample it",
            file=file,
        )
    if info.channels > MOST_CHANNELS:
        raise DataError(
            f"has {info.channels} channels; at most {MOST_CHANNELS} are mixed to one: extract those that you need",
            file=file,
        )
    if info.frames == 0:
        raise DataError("has no samples, as its header says; record or save it again, or leave it out", file=file)
    return info


@contextmanager
def _opened(given: SoundFile) -> Iterator[soundfile.SoundFile]:
    library, file = _library(), str(given)
    try:
        if isinstance(given, SoundBytes):
            with library.SoundFile(BytesIO(given.content)) as sound:
                yield sound
            return
        check_name(given)
        # libsndfile closes what it is given, even where it fails: it gets a handle of its own.
        with opened_file(given) as stream, library.SoundFile(os.dup(stream.fileno()), closefd=True) as sound:
            yield sound
    except FileNotFoundError:
        raise DataError("there is no such file; check the path", file=file) from None
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror or error}); check the file", file=file) from None
    except library.LibsndfileError as error:
        reason = str(error.error_string).strip().rstrip(".") or "not a format of sound"
        raise DataError(
            f"is not a sound file that can be read ({reason}); convert it to WAV or FLAC", file=file
        ) from None


def _library() -> Any:
    try:
        import soundfile
    except OSError as error:  # the wheel for this system came without libsndfile
        raise UsageError(f"sound needs libsndfile ({error}); install it (Debian: apt install libsndfile1)") from None
    return soundfile
