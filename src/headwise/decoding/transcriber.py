"""Transcribes sound of any length with any engine. Does not import torch itself.

Of each sound one window is decoded at a time, since where it ends tells where the next one begins; windows of several
sounds are decoded together. Without timestamps windows end in pauses, and those of one sound are decoded together too.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from headwise.bundle.directory import Bundle
from headwise.cancellation import check_cancelled
from headwise.decoding.speech_options import TEMPERATURES, SpeechEngine, SpeechOptions, SpeechSearch, Spoken
from headwise.decoding.transcript import Segment, Transcript
from headwise.decoding.windows import Cue, Window, WindowReader, cues_of
from headwise.errors import DataError, UsageError
from headwise.sound.features import HOP, Features, frames_of, log_mel
from headwise.sound.reading import RATE, OnCut, Samples, SoundFile, sound_blocks, sound_info
from headwise.text.speech_tokens import SpeechTokens
from headwise.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from headwise.models.interface import Network

Sound = SoundFile | Samples
OnProgress = Callable[[float], None]  # called with the seconds of sound done since the last call
OnSegment = Callable[[int, Segment], None]  # called with the number of the sound and what was found next in it
SHORTEST = RATE // 10  # samples: what is shorter holds no word


class Transcriber:
    """Writes down what is said: transcriber.transcribe(["a.wav"]) -> [Transcript(text, segments, …)]."""

    def __init__(self, bundle: Bundle, tokenizer: Tokenizer, tokens: SpeechTokens, engine: SpeechEngine) -> None:
        self.bundle, self.tokenizer, self.tokens, self.engine = bundle, tokenizer, tokens, engine
        settings: Any = bundle.settings
        self.mels, self.window, self.padded = settings.mels, settings.window, settings.padded  # in frames
        self._special = tokens.special(tokenizer.size)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.bundle.path)!r}, engine={self.engine.name!r})"

    @property
    def network(self) -> Network:
        """The model itself, on torch."""
        found: Any = getattr(self.engine, "network", None)
        if found is None:
            raise UsageError("the ctranslate2 engine cannot show attention; use the torch engine")
        network: Network = found
        return network

    @overload
    def transcribe(self, sounds: str | Path, **options: Any) -> Transcript: ...

    @overload
    def transcribe(self, sounds: Sequence[Sound], **options: Any) -> list[Transcript]: ...

    def transcribe(
        self, sounds: str | Path | Sequence[Sound], *, on_progress: OnProgress | None = None,
        on_cut: OnCut | None = None, on_segment: OnSegment | None = None, **options: Any,
    ) -> Transcript | list[Transcript]:  # fmt: skip
        """Returns the transcript of one file, or one per sound of a list, in order.

        Sounds are names of files, files in memory, or mono samples at 16 kHz.
        Options are those of SpeechOptions: language, task, beam, …. `on_cut` is told of files that are cut off, which
        are then transcribed as far as they go; without it they are an error.
        """
        told: dict[str, Any] = {"on_progress": on_progress, "on_cut": on_cut, "on_segment": on_segment}
        if isinstance(sounds, str | Path):
            return self.transcribe([sounds], **told, **options)[0]
        return list(self.transcribe_each(sounds, **told, **options))

    def transcribe_each(
        self, sounds: Sequence[Sound], *, on_progress: OnProgress | None = None, on_cut: OnCut | None = None,
        on_segment: OnSegment | None = None, **options: Any,
    ) -> Iterator[Transcript]:  # fmt: skip
        """Yields each transcript as soon as it and those before it are there."""
        if isinstance(sounds, str | Path | np.ndarray):
            raise UsageError("transcribe takes a list of sounds, not a single one; put it in a list")
        asked = SpeechOptions.of_model(self.bundle.decoding, **options)
        self._check(asked)
        for sound in sounds:  # before any work is done
            _check_sound(sound)
        waiting, running, done = iter(enumerate(sounds)), list[_Running](), dict[int, Transcript]()
        yielded = 0
        while True:
            while len(running) < asked.batch and (following := next(waiting, None)) is not None:
                number, sound = following
                reader = WindowReader(_blocks(sound, on_cut), self.window * HOP, asked.silence)
                running.append(_Running(number, sound, reader))
            if not running:
                return
            check_cancelled()
            told = {one.number: len(one.segments) for one in running}
            self._round(running, asked, on_progress)
            if on_segment is not None:
                for one in running:
                    for segment in one.segments[told[one.number] :]:
                        on_segment(one.number, segment)
            done |= {one.number: self._finished(one) for one in running if one.over}
            running = [one for one in running if not one.over]
            while yielded in done:
                yield done.pop(yielded)
                yielded += 1

    def detect_language(self, sound: Sound) -> dict[str, float]:
        """The probability of each language that the model knows, by the first window with sound in it."""
        return self.engine.languages([self.first_window(sound)[1]])[0]

    def first_window(self, sound: Sound) -> tuple[Window, Features]:
        """The first window with sound in it, and its features with their padding."""
        window = WindowReader(_blocks(sound, None), self.window * HOP, SpeechOptions().silence).next()
        if window is None or len(window.samples) < SHORTEST:
            raise DataError(
                "has no sound in it, only silence", file=None if isinstance(sound, np.ndarray) else str(sound)
            )
        return window, self._features(window)

    # ---- windows

    def _round(self, running: list[_Running], asked: SpeechOptions, on_progress: OnProgress | None) -> None:
        """Decodes the next window, or windows, of each sound."""
        timed = self._timestamps(asked)
        room = max(1, asked.batch // len(running)) if not timed else 1
        before = sum(one.reader.position for one in running)
        jobs: list[tuple[_Running, Window]] = []
        for one in running:
            jobs += [(one, window) for window in self._next(one, 1 if one.language is None else room, timed)]
        features = [self._features(window) for _, window in jobs]
        self._find_languages(jobs, features, asked)
        prompts = [self.tokens.prompt(one.language, asked.task, timed) for one, _ in jobs]
        for (one, window), (spoken, temperature) in zip(jobs, self._decode(features, prompts, asked), strict=True):
            self._add(one, window, spoken, temperature, asked, timed)
        if on_progress is not None:
            on_progress((sum(one.reader.position for one in running) - before) / RATE)

    def _next(self, one: _Running, most: int, timed: bool) -> list[Window]:
        found: list[Window] = []
        while len(found) < most and not one.over:
            window = one.reader.next()
            if window is None or len(window.samples) < SHORTEST:
                one.over = True
                if window is not None:
                    one.reader.advance(len(window.samples))
                break
            if not timed:
                window = one.reader.cut(window)
                one.reader.advance(len(window.samples))
            found.append(window)
        return found

    def _features(self, window: Window) -> Features:
        return log_mel(window.samples, self.mels, frames=self.padded(frames_of(len(window.samples))))

    def _find_languages(
        self, jobs: list[tuple[_Running, Window]], features: list[Features], asked: SpeechOptions
    ) -> None:
        if not self.tokens.languages:
            for one, _ in jobs:
                one.language = next(iter(self.bundle.languages), asked.language)
            return
        unknown = [place for place, (one, _) in enumerate(jobs) if one.language is None]
        if asked.language is not None:
            for place in unknown:
                jobs[place][0].language = asked.language
        elif unknown:
            for place, found in zip(unknown, self.engine.languages([features[n] for n in unknown]), strict=True):
                jobs[place][0].language = max(found, key=lambda name: found[name])

    # ---- decoding, with other temperatures where it fails

    def _decode(
        self, features: list[Features], prompts: list[tuple[int, ...]], asked: SpeechOptions
    ) -> list[tuple[Spoken, float]]:
        found: list[tuple[Spoken, float]] = [(Spoken((), -math.inf), 0.0)] * len(features)
        left = list(range(len(features)))
        for temperature in self._temperatures(asked):
            search = SpeechSearch(asked.beam, temperature, asked.best_of, self._timestamps(asked), asked.seed)
            for group in _equally_long(features, left):
                answers = self.engine.search([features[n] for n in group], [prompts[n] for n in group], search)
                for place, spoken in zip(group, answers, strict=True):
                    found[place] = spoken, temperature
            left = [place for place in left if self._failed(found[place][0], asked)]
            if not left:
                break
        return found

    def _failed(self, spoken: Spoken, asked: SpeechOptions) -> bool:
        """Whether the text repeats itself, or the model is unsure and does not say that there is silence."""
        if compression(self._text(spoken.tokens)) > asked.most_compression or spoken.stopped == "loop":
            return True
        return spoken.mean_log_prob < asked.least_log_prob and not _says_silence(spoken, asked)

    def _temperatures(self, asked: SpeechOptions) -> tuple[float, ...]:
        """The thresholds are those of Whisper: other models are not sampled from unless that is asked for."""
        return asked.temperatures or (TEMPERATURES if self.tokens.no_speech is not None else TEMPERATURES[:1])

    def _timestamps(self, asked: SpeechOptions) -> bool:
        return self.tokens.timestamps is not None and asked.timestamps is not False

    # ---- from tokens to segments

    def _add(
        self, one: _Running, window: Window, spoken: Spoken, temperature: float, asked: SpeechOptions, timed: bool
    ) -> None:
        if timed and self.tokens.timestamps is not None:
            cues, used = cues_of(spoken.tokens, self.tokens.timestamps, window)
            one.reader.advance(used)
        else:
            cues = [Cue(0.0, window.seconds, spoken.tokens)]
        if _says_silence(spoken, asked):
            return
        confidence = min(1.0, math.exp(spoken.mean_log_prob)) if spoken.mean_log_prob <= 0 else 1.0
        for cue in cues:
            text = self._text(cue.tokens)
            if text.strip():
                start = window.start / RATE
                segment = Segment(start + cue.start, start + cue.end, text, confidence, spoken.no_speech, temperature)
                one.segments.append(segment)

    def _text(self, tokens: Sequence[int]) -> str:
        return self.tokenizer.decode([token for token in tokens if token not in self._special])

    def _finished(self, one: _Running) -> Transcript:
        file = "" if isinstance(one.sound, np.ndarray) else str(one.sound)
        # Whisper's tokens have their space before them; those of other models have none at either end.
        parts = [segment.text for segment in one.segments]
        joined = "".join(
            part if part.startswith((" ", "\n")) or not number else f" {part}" for number, part in enumerate(parts)
        )
        text = " ".join(joined.split())
        reader = one.reader
        return Transcript(text, tuple(one.segments), one.language, reader.position / RATE, reader.skipped / RATE, file)

    def _check(self, asked: SpeechOptions) -> None:
        """Refuses what the model cannot do, before any sound is read."""
        known = self.tokens.languages
        if asked.timestamps and self.tokens.timestamps is None:
            raise UsageError("the model has no timestamps; leave them out")
        if (known and asked.language is not None) or asked.task == "translate":
            self.tokens.prompt(asked.language or next(iter(known), None), asked.task, timestamps=True)
        if (
            not known
            and asked.language is not None
            and self.bundle.languages
            and asked.language not in self.bundle.languages
        ):
            raise UsageError(f"the model knows {', '.join(self.bundle.languages)} only, not '{asked.language}'")


@dataclass
class _Running:
    """A sound that is being transcribed."""

    number: int
    sound: Sound
    reader: WindowReader
    language: str | None = None
    over: bool = False

    def __post_init__(self) -> None:
        self.segments: list[Segment] = []


def compression(text: str) -> float:
    """How many times shorter zlib makes the text: much, if it repeats itself."""
    raw = text.encode()
    return len(raw) / len(zlib.compress(raw)) if raw else 0.0


def _says_silence(spoken: Spoken, asked: SpeechOptions) -> bool:
    silent = spoken.no_speech is not None and spoken.no_speech > asked.most_no_speech
    return silent and spoken.mean_log_prob < asked.least_log_prob


def _equally_long(features: Sequence[Features], places: Sequence[int]) -> Iterator[list[int]]:
    """Groups of windows with the same number of frames: what a window gets does not depend on its batch."""
    for frames in sorted({len(features[place]) for place in places}):
        yield [place for place in places if len(features[place]) == frames]


def _check_sound(sound: Sound) -> None:
    if isinstance(sound, np.ndarray):
        if sound.ndim != 1 or sound.dtype != np.float32:
            raise UsageError(
                f"samples must be mono float32 at {RATE} Hz, with one axis, not {sound.dtype} of shape {sound.shape}"
            )
    else:
        sound_info(sound)


def _blocks(sound: Sound, on_cut: OnCut | None) -> Iterator[Samples]:
    if not isinstance(sound, np.ndarray):
        return sound_blocks(sound, on_cut=on_cut)
    if len(sound) and not bool(np.isfinite(sound).all()):
        raise DataError("samples must be finite, but some are NaN or infinite")
    return iter([sound] if len(sound) else [])
