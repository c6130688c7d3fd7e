"""A transcriber for a server: files in memory are read to their end before they are transcribed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headwise.cancellation import check_cancelled
from headwise.decoding.speech_options import SpeechOptions
from headwise.decoding.transcriber import Transcriber
from headwise.decoding.transcript import Transcript
from headwise.errors import UsageError
from headwise.sound.reading import RATE, SoundBytes, TooLong, sound_blocks, sound_info
from headwise.tasks.interface import Facts
from headwise.tasks.served_encoders import limit_torch

PROBE_SECONDS = 0.3  # of noise; silence would not be decoded


@dataclass(frozen=True)
class CheckedSound:
    """A file that can be read to its end."""

    file: SoundBytes
    seconds: float


class ServedTranscriber:
    """A speech model; on torch each call uses one thread, since requests run in parallel."""

    def __init__(self, name: str, opened: Transcriber) -> None:
        self.opened = opened
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
        seconds = sound_info(file).seconds
        if seconds <= most_seconds:
            seconds = 0.0
            for block in sound_blocks(file):
                check_cancelled()
                seconds += len(block) / RATE
                if seconds > most_seconds:
                    break
        if seconds > most_seconds:
            long = f"is {seconds:,.0f} s long" if seconds < 1e9 else "does not say how long it is"
            raise TooLong(f"{long}, but at most {most_seconds:g} s are transcribed at once; cut it", file=str(file))
        return CheckedSound(file, seconds)

    def transcribe(self, sounds: Sequence[CheckedSound], **options: Any) -> list[Transcript]:
        """Transcribes sounds together; options are those of SpeechOptions."""
        limit_torch(self.opened.engine)
        return self.opened.transcribe([sound.file for sound in sounds], **options)

    def look(self, text: str, target: str | None) -> str:
        raise UsageError("a server shows the attention in texts only; use headwise look")
