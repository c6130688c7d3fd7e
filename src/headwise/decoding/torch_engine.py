"""The engine that does everything: PyTorch, on the cached step of the model itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from headwise.decoding.batching import Sources, batches
from headwise.decoding.beam import beam_search
from headwise.decoding.constraints import MORE_PLACES, ConstrainedSelect
from headwise.decoding.fast_step import FastTransformer
from headwise.decoding.greedy import greedy_search
from headwise.decoding.hypothesis import Hypothesis, best
from headwise.decoding.model import Model
from headwise.decoding.options import Request, Sampling, SearchOptions
from headwise.decoding.sampling import Sampler, row_key
from headwise.decoding.scoring import score_targets
from headwise.errors import UsageError
from headwise.models.transformer import Transformer


class TorchEngine:
    """Searches with an encoder-decoder. The model may be in training: it is put back as it was after each call."""

    name = "torch"

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        architecture: dict[str, Any] = getattr(model, "architecture", {})
        # Learned positions end somewhere; the others do not.
        self.longest: int | None = architecture["max_length"] if architecture.get("positions") == "learned" else None

    def search(
        self, sources: Sequence[Sequence[int]], options: SearchOptions, requests: Sequence[Request] | None = None
    ) -> list[list[Hypothesis]]:
        if options.sample is not None:
            return self._sample(sources, options, options.sample, requests)
        found: list[list[Hypothesis]] = [[] for _ in sources]
        constrained = [place for place, request in enumerate(requests or ()) if request.phrases]
        free = sorted(set(range(len(sources))).difference(constrained))
        model = self._searched()
        with _inference(self.model):
            for batch in self._batches(sources, options, requests, free):
                if options.beam > 1:
                    results = beam_search(model, batch, options)
                else:
                    results = [[one] for one in greedy_search(model, batch, options)]
                _put(found, batch, results)
            for batch in self._batches(sources, options, requests, constrained):
                beam = options.beam + MORE_PLACES
                _put(found, batch, beam_search(model, batch, options, beam, ConstrainedSelect(batch)))
        return found

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[tuple[float, ...]]:
        with _inference(self.model):
            return score_targets(self.model, sources, targets)

    def lacks(self, options: SearchOptions, requests: Sequence[Request] | None = None) -> str | None:
        return None

    def _sample(
        self,
        sources: Sequence[Sequence[int]],
        options: SearchOptions,
        sampling: Sampling,
        requests: Sequence[Request] | None,
    ) -> list[list[Hypothesis]]:
        """Each sample is a sentence of its own; equal samples are given once."""
        if any(request.phrases for request in requests or ()):
            raise UsageError("required phrases (glossary, protected spans) need a search; leave out the sampling")
        count = options.n_best
        repeated = [source for source in sources for _ in range(count)]
        wanted = None if requests is None else [request for request in requests for _ in range(count)]
        found: dict[int, Hypothesis] = {}
        model = self._searched()
        with _inference(self.model):
            for batch in self._batches(repeated, options, wanted, range(len(repeated))):
                keys = [row_key(sampling.seed, repeated[place], place % count) for place in batch.indices]
                sampler = Sampler(sampling, np.array(keys, dtype=np.uint64))
                results = greedy_search(model, batch, options, sampler, sampler.needs_history)
                found.update(zip(batch.indices, results, strict=True))
        return [best((found[place * count + i] for i in range(count)), count) for place in range(len(sources))]

    def _batches(
        self,
        sources: Sequence[Sequence[int]],
        options: SearchOptions,
        requests: Sequence[Request] | None,
        places: Sequence[int],
    ) -> Iterator[Sources]:
        """The sentences at `places` in batches."""
        device = next(self.model.parameters()).device
        for group in batches([len(sources[place]) for place in places], options):
            yield Sources.of([places[i] for i in group], sources, requests, options, self.longest, device)

    def _searched(self) -> Model:
        return FastTransformer(self.model) if type(self.model) is Transformer else cast("Model", self.model)


def _put(found: list[list[Hypothesis]], batch: Sources, results: list[list[Hypothesis]]) -> None:
    for place, hypotheses in zip(batch.indices, results, strict=True):
        found[place] = hypotheses


@contextmanager
def _inference(model: nn.Module) -> Iterator[None]:
    """No gradients and no dropout within the block."""
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        model.train(training)
