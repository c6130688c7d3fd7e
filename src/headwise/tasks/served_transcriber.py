"""A transcriber for a server: files in memory are read to their end before they are transcribed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from headwise.cancellation import check_cancelled
from headwise.decoding.speech_options import SpeechOptions
from headwise.decoding.transcriber import Transcriber
from headwise.decoding.transcript import Transcript
from headwise.sound.reading import RATE, SoundBytes, TooLong, sound_blocks, sound_info
from headwise.tasks.interface import Facts
from headwise.tasks.served_encoders import limit_torch
from headwise.tasks.translate import one_torch_thread

LOOKED_SECONDS = 60.0  # of a sound whose attention is drawn; models read some 30 at once
MOST_SAMPLES = 120_000_000  # of all channels: ten minutes in stereo at 96 kHz; silence has few bytes, but takes as long
PROBE_SECONDS = 0.3  # of noise; silence would not be decoded


@dataclass(frozen=True)
class CheckedSound:
    """A file that can be read to its end."""

    file: SoundBytes
    seconds: float


class ServedTranscriber:
    """A speech model; on torch each call uses one thread, since requests run in parallel."""

    def __init__(self, name: str, opened: Transcriber, open_on_torch: Callable[[], Transcriber]) -> None:
        self.opened, self._open_on_torch = opened, open_on_torch
        beam = SpeechOptions.of_model(opened.bundle.decoding).beam
        self.facts = Facts.of(name, opened.bundle, opened.engine.name, beam=beam, reads="sound")

    def probe(self) -> None:
        limit_torch(self.opened.engine)
        noise = np.random.default_rng(0).normal(0, 0.1, round(PROBE_SECONDS * RATE)).astype(np.float32)
        language = next(iter(self.opened.tokens.languages), None)
        self.opened.transcribe([noise], beam=1, temperatures=(0.0,), language=language)

    def read(self, content: bytes, most_seconds: float) -> CheckedSound:
        """Reads all of a file, a second at a time; raises a DataError with what is wrong with it.

        A header that promises too much is refused before anything is decoded; one that promises too little, as soon as
        more has come.
        """
        file = SoundBytes(content)
        info = sound_info(file)
        seconds = info.seconds
        if seconds <= most_seconds:
            if (samples := info.frames * info.channels) > MOST_SAMPLES:
                many = f"has {samples:,} samples in {info.channels} channels, but at most {MOST_SAMPLES:,} are read"
                raise TooLong(f"{many}; mix it to one channel or resample it to {RATE:,} Hz", file=str(file))
            seconds = 0.0
            for block in sound_blocks(file):
                check_cancelled()
                seconds += len(block) / RATE
                if seconds > most_seconds:
                    break
        if seconds > most_seconds:
            long = f"is {seconds:,.0f} s long" if seconds < 1e9 else "does not say how long it is"
            raise TooLong(f"{long}, but at most {most_seconds:g} s are read at once; cut it", file=str(file))
        return CheckedSound(file, seconds)

    def transcribe(self, sounds: Sequence[CheckedSound], **options: Any) -> list[Transcript]:
        """Transcribes sounds together; options are those of SpeechOptions."""
        limit_torch(self.opened.engine)
        return self.opened.transcribe([sound.file for sound in sounds], **options)

    def look(self, item: bytes, target: str | None) -> str:
        """Returns a page; `item` is the content of a file, of which the first window is looked at."""
        from headwise.tasks.transcribe import TASK

        checked = self.read(item, LOOKED_SECONDS)
        one_torch_thread()
        return TASK.look(self._on_torch, checked.file, target).page()

    @cached_property
    def _on_torch(self) -> Transcriber:
        return self.opened if self.opened.engine.name == "torch" else self._open_on_torch()
