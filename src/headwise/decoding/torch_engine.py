"""The engine that supports every option: PyTorch, with the model's own cached decoding step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from headwise.data.batch import pad
from headwise.decoding.beam import beam_search
from headwise.decoding.fast_step import fast_stepper
from headwise.decoding.hypothesis import Hypothesis, Scores, best
from headwise.decoding.options import Request, Sampling, SearchOptions
from headwise.decoding.required_phrases import EXTRA_SLOTS, ConstrainedSelect
from headwise.decoding.sampling import Sampler, row_key
from headwise.decoding.scoring import score_targets
from headwise.decoding.source_batches import Sources, batches, shares
from headwise.decoding.threads import is_small, one_core, side_by_side
from headwise.decoding.token_loop import greedy_search
from headwise.errors import UsageError, WorkFailed
from headwise.models.interface import Network, Stepper
from headwise.nn import capture_attention
from headwise.text.ragged import Ragged
from headwise.text.tokenizer import BOS, EOS

_ATTENTION_BATCH = 32  # sentences
Floats = NDArray[np.float32]
Search = Callable[[Stepper, Sources], list[list[Hypothesis]]]


class TorchEngine:
    """Searches with any network that has `start` and `advance`; restores training mode afterwards.

    On a CPU, as many batches are decoded in parallel as torch has threads, each on its own core. `frozen` means that
    the weights will not change, so they are copied for the fast step once instead of at every call. With
    `scores="none"` greedy search skips the softmax.
    """

    name = "torch"

    def __init__(self, model: Network, *, frozen: bool = False, scores: Scores = "tokens") -> None:
        self.model, self.frozen, self.scores = model, frozen, scores
        self.longest = model.max_length
        self._kept: Stepper | None = None
        self._small = is_small(model)

    def search(
        self, sources: Sequence[Sequence[int]], options: SearchOptions, requests: Sequence[Request] | None = None
    ) -> list[list[Hypothesis]]:
        if options.sample is not None:
            return self._sample(sources, options, options.sample, requests)

        def plain(model: Stepper, batch: Sources) -> list[list[Hypothesis]]:
            if options.beam > 1:
                return beam_search(model, batch, options)
            return [[one] for one in greedy_search(model, batch, options, scored=self.scores != "none")]

        def constrained(model: Stepper, batch: Sources) -> list[list[Hypothesis]]:
            # Required phrases may be very unlikely. With a length penalty, longer outputs would be preferred because
            # their other words raise the average. So the search here ranks by probability alone.
            likeliest = replace(options, length_penalty=0.0)
            found = beam_search(model, batch, likeliest, options.beam + EXTRA_SLOTS, ConstrainedSelect(batch))
            alpha = options.length_penalty
            return [[Hypothesis.of(h.tokens, h.log_probs, h.stopped, alpha) for h in each] for each in found]

        required = [place for place, request in enumerate(requests or ()) if request.phrases]
        free = sorted(set(range(len(sources))).difference(required))
        found = self._run(plain, sources, options, requests, free)
        if required:
            found |= self._run(constrained, sources, options, requests, required)
        if not all(found.values()):
            raise WorkFailed("the model's probabilities are NaN: its weights are damaged, or its training diverged")
        return [found[place] for place in range(len(sources))]

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[tuple[float, ...]]:
        with inference(self.model):
            return score_targets(self.model, sources, targets)

    def attention(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Floats] | None:
        names = self.model.attention_names().get("cross")
        if not names:
            return None
        found: list[Floats] = []
        with inference(self.model):
            for start in range(0, len(sources), _ATTENTION_BATCH):
                end = start + _ATTENTION_BATCH
                found += cross_attention(
                    self.model, names[max(0, len(names) - 2)], sources[start:end], targets[start:end]
                )
        return found

    def _sample(
        self,
        sources: Sequence[Sequence[int]],
        options: SearchOptions,
        sampling: Sampling,
        requests: Sequence[Request] | None,
    ) -> list[list[Hypothesis]]:
        """Decodes each sample like a sentence of its own; identical samples are returned once."""
        if any(request.phrases for request in requests or ()):
            raise UsageError("required phrases (glossary, protected spans) do not work with sampling; leave one out")
        count = options.n_best
        repeated = [source for source in sources for _ in range(count)]
        repeated_requests = None if requests is None else [request for request in requests for _ in range(count)]

        def draw(model: Stepper, batch: Sources) -> list[list[Hypothesis]]:
            keys = [row_key(sampling.seed, repeated[place], place % count) for place in batch.indices]
            sampler = Sampler(sampling, np.array(keys, dtype=np.uint64))
            return [[one] for one in greedy_search(model, batch, options, sampler)]

        found = self._run(draw, repeated, options, repeated_requests, range(len(repeated)))
        samples = [found[place][0] for place in range(len(repeated))]
        return [best(samples[place * count : (place + 1) * count], count) for place in range(len(sources))]

    def _run(
        self,
        search: Search,
        sources: Sequence[Sequence[int]],
        options: SearchOptions,
        requests: Sequence[Request] | None,
        places: Sequence[int],
    ) -> dict[int, list[Hypothesis]]:
        """Runs `search` on the sentences at `places`, in batches that are decoded in parallel."""
        device = next(self.model.parameters()).device
        workers = torch.get_num_threads() if device.type == "cpu" else 1
        groups = shares(list(batches([len(sources[place]) for place in places], options)), workers)

        def work(group: list[int]) -> tuple[tuple[int, ...], list[list[Hypothesis]]]:
            with torch.inference_mode():
                chosen = [places[number] for number in group]
                batch = Sources.of(chosen, sources, requests, options, self.longest, device)
                return batch.indices, search(model, batch)

        found: dict[int, list[Hypothesis]] = {}
        with inference(self.model):
            model = self._stepper()
            alone = min(workers, len(groups)) <= 1
            with one_core() if alone and workers > 1 and self._small else nullcontext():
                for indices, results in map(work, groups) if alone else side_by_side(work, groups, workers):
                    found.update(zip(indices, results, strict=True))
        return found

    def _stepper(self) -> Stepper:
        if not self.frozen:
            return fast_stepper(self.model)
        if self._kept is None:
            self._kept = fast_stepper(self.model)
        return self._kept


def cross_attention(
    model: Network, name: str, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> list[Floats]:
    """Computes the mean over the heads of one layer for given targets, (T, S) each, without end of sentence."""
    device = next(model.parameters()).device
    lengths = torch.tensor([len(source) + 1 for source in sources], device=device)
    ids, inputs = pad(Ragged.of(sources), end=EOS).to(device), pad(Ragged.of(targets), start=BOS).to(device)
    with capture_attention(model, lambda module: module == name) as captured:
        model.states(ids, inputs, lengths)
    weights = captured[name][0].mean(dim=1).cpu().numpy()  # (B, T, S)
    return [weights[i, : len(t), : len(s)] for i, (s, t) in enumerate(zip(sources, targets, strict=True))]


@contextmanager
def inference(model: nn.Module) -> Iterator[None]:
    """Disables gradients and dropout within the block. Calls `eval` only if needed: it takes longer than a step."""
    training = model.training
    if training:
        model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        if training:
            model.train()
