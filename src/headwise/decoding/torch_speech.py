"""The torch engine of speech models: beam search and sampling over windows of sound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headwise.decoding.beam import Beams, Candidates, beam_search, best_continuations, restrict
from headwise.decoding.fast_step import fast_stepper
from headwise.decoding.hypothesis import Hypothesis
from headwise.decoding.options import NO_REQUEST, Request, Sampling, SearchOptions
from headwise.decoding.sampling import Sampler, row_key
from headwise.decoding.source_batches import Rule
from headwise.decoding.speech_options import SpeechSearch, Spoken
from headwise.decoding.timestamp_rules import speech_rules
from headwise.decoding.token_filters import TokenFilters
from headwise.decoding.token_loop import TargetOutput, TokenLoop
from headwise.decoding.torch_engine import inference
from headwise.errors import UsageError, WorkFailed
from headwise.models.interface import Stepper
from headwise.sound.features import Features
from headwise.text.speech_tokens import SpeechTokens
from headwise.text.tokenizer import BOS


@dataclass(frozen=True)
class Sounds:
    """A batch of windows, as searches want it."""

    features: Tensor  # (B, frames, mels)
    prompt: Tensor  # (B, T)
    limits: Tensor  # (B,) longest text, with its end
    rules: tuple[Rule, ...]

    def __len__(self) -> int:
        return self.features.size(0)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return (self.features,)

    @property
    def requests(self) -> tuple[Request, ...]:
        return (NO_REQUEST,) * len(self)

    @property
    def guarded(self) -> Tensor:
        return torch.ones_like(self.limits, dtype=torch.bool)


class TorchSpeech:
    """A `SpeechEngine`. `frozen`: the weights do not change, so that the fast step is laid out once."""

    name = "torch"

    def __init__(self, network: Any, tokens: SpeechTokens, *, frozen: bool = False) -> None:
        self.network, self.tokens, self.frozen = network, tokens, frozen
        self._kept: Stepper | None = None

    def search(
        self, windows: Sequence[Features], prompts: Sequence[tuple[int, ...]], asked: SpeechSearch
    ) -> list[Spoken]:
        found: dict[int, Spoken] = {}
        with inference(self.network):
            stepper = self._stepper()
            for length in sorted({len(prompt) for prompt in prompts}):  # prompts of one batch are equally long
                places = [place for place, prompt in enumerate(prompts) if len(prompt) == length]
                sounds = self._sounds([windows[n] for n in places], [prompts[n] for n in places], asked.timestamps)
                listener = _Listener(stepper, self.tokens.no_speech, prompts[places[0]].index(BOS))
                decode = self._sample if asked.temperature > 0 else self._beam
                for place, hypothesis, silent in zip(places, *decode(listener, sounds, asked), strict=True):
                    found[place] = Spoken(hypothesis.tokens, hypothesis.mean_log_prob(0.0), silent, hypothesis.stopped)
        return [found[place] for place in range(len(windows))]

    def languages(self, windows: Sequence[Features]) -> list[dict[str, float]]:
        known = self.tokens.languages
        if not known:
            raise UsageError("the model knows one language only; there is nothing to detect")
        with inference(self.network):
            stepper, features = self._stepper(), self._tensor(windows)
            state = stepper.start((features,), 1)
            newest = stepper.advance(state, torch.full((len(windows),), BOS, device=features.device))
            logits = stepper.output.logits(newest)[:, list(known.values())]
        return [dict(zip(known, row, strict=True)) for row in logits.softmax(dim=-1).tolist()]

    def _sounds(self, windows: Sequence[Features], prompts: Sequence[tuple[int, ...]], timestamps: bool) -> Sounds:
        features = self._tensor(windows)
        room = int(self.network.max_length) - len(prompts[0])
        if room < 1:
            raise UsageError(f"the prompt fills all {self.network.max_length} positions of the model; shorten it")
        limits = torch.full((len(windows),), room, device=features.device)
        rules = speech_rules(self.tokens, timestamps)
        return Sounds(features, torch.tensor(prompts, device=features.device), limits, rules)

    def _tensor(self, windows: Sequence[Features]) -> Tensor:
        device = next(self.network.parameters()).device
        return torch.from_numpy(np.stack(windows).astype(np.float32, copy=False)).to(device)

    def _beam(
        self, stepper: _Listener, sounds: Sounds, asked: SpeechSearch
    ) -> tuple[list[Hypothesis], list[float | None]]:
        """Of the hypotheses that were found, the one whose tokens are likeliest on average."""
        options = SearchOptions(beam=asked.beam, n_best=asked.beam, length_penalty=0.0)
        found = beam_search(stepper, sounds, options, choose=_select)
        if not all(found):
            raise WorkFailed("the model's probabilities are NaN: its weights are damaged, or its training diverged")
        best = [max(each, key=lambda h: (h.stopped != "loop", h.mean_log_prob(0.0))) for each in found]
        return best, stepper.silent(len(sounds))

    def _sample(
        self, stepper: _Listener, sounds: Sounds, asked: SpeechSearch
    ) -> tuple[list[Hypothesis], list[float | None]]:
        """Draws several texts of each window; the samples of one share its sound."""
        best, silent = [], list[float | None]()
        sampling = Sampling(temperature=asked.temperature, seed=asked.seed)
        filters = TokenFilters.of(sounds, SearchOptions(beam=1))
        for row in range(len(sounds)):
            prompt = sounds.prompt[row : row + 1]
            keys = [row_key(asked.seed, prompt[0].tolist(), number) for number in range(asked.best_of)]
            outputs = [TargetOutput(int(sounds.limits[row]), True) for _ in keys]
            pick: Any = _SpokenPicker(filters, Sampler(sampling, np.array(keys, dtype=np.uint64)))
            state = stepper.start((sounds.features[row : row + 1],), 1)
            loop = TokenLoop(stepper, state, prompt, outputs, pick)
            while loop.rows:
                loop.step()
            drawn = [output.hypothesis(0.0, True) for output in outputs]
            best.append(max(drawn, key=lambda h: (h.stopped != "loop", h.mean_log_prob(0.0))))
            silent += stepper.silent(1)
        return best, silent

    def _stepper(self) -> Stepper:
        if not self.frozen:
            return fast_stepper(self.network)
        if self._kept is None:
            self._kept = fast_stepper(self.network)
        return self._kept


def _select(log_probs: Tensor, beams: Beams, filters: TokenFilters) -> Candidates:
    """Shares probabilities among the tokens that the rules allow; otherwise a forced timestamp would look unsure."""
    return best_continuations(restrict(log_probs, beams, filters).log_softmax(dim=-1), beams)


@dataclass(frozen=True)
class _SpokenPicker:
    """Samples a token of each row; its log-probability is among the tokens that the rules allow."""

    filters: TokenFilters
    sampler: Sampler
    needs_history = True

    def __call__(self, logits: Tensor, rows: Sequence[int], step: int, history: Tensor | None) -> tuple[Tensor, Tensor]:
        logits = self.filters.apply(logits, step, None, history)
        log_probs = logits.log_softmax(dim=-1)
        tokens = self.sampler(logits, rows, step, history)
        return tokens, log_probs.gather(1, tokens[:, None]).squeeze(1)


class _Listener:
    """A stepper that notes, while a prompt is read, how likely it is that nothing is said.

    That is what the model says after the begin of the transcript, before language and task.
    """

    def __init__(self, stepper: Stepper, no_speech: int | None, begin: int) -> None:
        self.stepper, self.output, self.no_speech, self.begin = stepper, stepper.output, no_speech, begin
        self._heard: list[float] = []

    def start(self, source: tuple[Tensor, ...] | None, rows: int = 1) -> Any:
        return self.stepper.start(source, rows)

    def advance(self, state: Any, tokens: Tensor) -> Tensor:
        if tokens.dim() == 1 or self.no_speech is None:
            return self.stepper.advance(state, tokens)
        first, rest = tokens[:, : self.begin + 1], tokens[:, self.begin + 1 :]
        newest = self.stepper.advance(state, first)
        self._heard += self.output.logits(newest).softmax(dim=-1)[:, self.no_speech].tolist()
        return self.stepper.advance(state, rest) if rest.size(1) else newest

    def silent(self, count: int) -> list[float | None]:
        """What was noted of the newest so many windows."""
        if self.no_speech is None:
            return [None] * count
        heard, self._heard = self._heard[-count:], []
        return [value if math.isfinite(value) else None for value in heard]
