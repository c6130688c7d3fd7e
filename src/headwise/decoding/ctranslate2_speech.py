"""Decodes windows of sound with CTranslate2 on an exported speech model. Does not import torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np

from headwise.bundle.directory import Bundle
from headwise.cancellation import check_cancelled
from headwise.decoding.ctranslate2_workers import Workers
from headwise.decoding.hypothesis import Stopped
from headwise.decoding.loops import kept_length
from headwise.decoding.speech_options import SpeechEngine, SpeechSearch, Spoken
from headwise.errors import UsageError
from headwise.sound.features import Features
from headwise.text.speech_tokens import LATEST_START, SpeechTokens

LANGUAGES_FROM = 51_865  # tokens: CTranslate2 takes a model with fewer for an English one, whatever its marks are


class CTranslate2Speech:
    """A `SpeechEngine`. Samples are drawn by the other engine: CTranslate2's cannot be seeded per window."""

    name = "ctranslate2"

    def __init__(
        self, directory: Path, bundle: Bundle, tokens: SpeechTokens, sampling_engine: Callable[[], SpeechEngine]
    ) -> None:
        self.tokens, self._sampling_engine = tokens, sampling_engine
        self._other: SpeechEngine | None = None
        sizes = bundle.architecture
        self.longest = int(sizes["max_length"])
        self._ours = tokens.published_order(int(sizes["vocab"]))
        self._theirs = {ours: number for number, ours in enumerate(self._ours)}
        self._workers = Workers(ctranslate2.models.Whisper, directory)
        times = () if tokens.timestamps is None else range(tokens.timestamps, int(sizes["vocab"]))
        self._times = [self._theirs[number] for number in times]

    def search(
        self, windows: Sequence[Features], prompts: Sequence[tuple[int, ...]], asked: SpeechSearch
    ) -> list[Spoken]:
        if asked.temperature > 0:
            return self._sampler().search(windows, prompts, asked)
        running: list[tuple[int, Any]] = []
        for length in sorted({len(prompt) for prompt in prompts}):  # prompts of one batch are equally long
            places = [place for place, prompt in enumerate(prompts) if len(prompt) == length]
            size = self._workers.share(len(places), len(places))
            for start in range(0, len(places), size):
                part = places[start : start + size]
                running += zip(
                    part, self._begin([windows[n] for n in part], [prompts[n] for n in part], asked), strict=True
                )
        check_cancelled()
        found = {place: self._spoken(result.result(), prompts[place]) for place, result in running}
        return [found[place] for place in range(len(windows))]

    def languages(self, windows: Sequence[Features]) -> list[dict[str, float]]:
        if not self.tokens.languages:
            raise UsageError("the model knows one language only; there is nothing to detect")
        found = self._workers.engine.detect_language(_view(windows))
        return [{name.strip("<|>"): chance for name, chance in row} for row in found]

    def _begin(self, windows: Sequence[Features], prompts: Sequence[tuple[int, ...]], asked: SpeechSearch) -> Any:
        return self._workers.engine.generate(
            _view(windows),
            [[self._theirs[number] for number in prompt] for prompt in prompts],
            asynchronous=True,
            beam_size=asked.beam,
            num_hypotheses=asked.beam,
            length_penalty=1.0,
            # It allows half of this, or what a prompt leaves of it.
            max_length=2 * self._room(prompts[0]),
            return_scores=True,
            return_no_speech_prob=self.tokens.no_speech is not None,
            max_initial_timestamp_index=LATEST_START,
            suppress_tokens=[-1] if asked.timestamps else [-1, *self._times],
        )

    def _room(self, prompt: Sequence[int]) -> int:
        room = self.longest - len(prompt)
        if room < 1:
            raise UsageError(f"the prompt fills all {self.longest} positions of the model; shorten it")
        return room

    def _spoken(self, result: Any, prompt: Sequence[int]) -> Spoken:
        """Of the hypotheses that were found, the one whose tokens are likeliest on average, as on torch."""
        silent = result.no_speech_prob if self.tokens.no_speech is not None else None
        found = []
        for ids, score in zip(result.sequences_ids, result.scores, strict=True):
            tokens = [self._ours[number] for number in ids]
            stopped: Stopped = "length" if len(tokens) >= self._room(prompt) else "eos"
            # Scores are sums over what was written, divided by its length without the end.
            mean = score * max(1, len(tokens)) / (len(tokens) + (stopped == "eos"))
            if (kept := kept_length(tokens)) < len(tokens):
                tokens, stopped = tokens[:kept], "loop"
            found.append(Spoken(tuple(tokens), mean, silent, stopped))
        return max(found, key=lambda spoken: (spoken.stopped != "loop", spoken.mean_log_prob))

    def _sampler(self) -> SpeechEngine:
        if self._other is None:
            self._other = self._sampling_engine()
        return self._other


def _view(windows: Sequence[Features]) -> Any:
    stacked = np.stack(windows).astype(np.float32, copy=False)  # (B, frames, mels)
    return ctranslate2.StorageView.from_array(np.ascontiguousarray(stacked.transpose(0, 2, 1)))
