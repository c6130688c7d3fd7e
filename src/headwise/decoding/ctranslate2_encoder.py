"""Runs an exported encoder with CTranslate2; what comes after it is computed in numpy. Does not import torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import ctranslate2
import numpy as np

from headwise.cancellation import check_cancelled
from headwise.decoding.ctranslate2_workers import Workers
from headwise.decoding.encoder_heads import Floats, pool
from headwise.decoding.item_batches import similar
from headwise.text.tokenizer import EOS

Head = Callable[[Floats], Floats]
_MOST_COST = 1024  # tokens of a batch, unless a single text has more; a batch cannot be stopped


class CTranslate2Encoder:
    """Answers with one row per text: its pooled states, or what `head` makes of them; or with a row per token.

    An input has at most `segments` texts; `pooling` says what stands for all of it.
    """

    name = "ctranslate2"

    def __init__(self, directory: Path, *, segments: int, pooling: str = "mean", head: Head | None = None) -> None:
        self._workers = Workers(ctranslate2.Encoder, directory)
        self._encoder = self._workers.engine
        self.segments, self.pooling, self.head = segments, pooling, head

    def answers(self, items: Sequence[list[int]]) -> Floats:
        """One row of numbers per item, in the order of the items."""
        batches, rows = self._in_batches(items, self._run)
        found = np.empty((len(items), rows[0].shape[1] if rows else 0), dtype=np.float32)
        for batch, answer in zip(batches, rows, strict=True):
            found[batch] = answer
        return found

    def token_logits(self, items: Sequence[list[int]], places: Sequence[Sequence[int]]) -> list[Floats]:
        """For each item what the head says at the given places, (places, V)."""
        assert self.head is not None
        batches, states = self._in_batches(items, self._states)
        found = [np.zeros((0, 0), dtype=np.float32)] * len(items)
        for batch, several in zip(batches, states, strict=True):
            for place, one in zip(batch, several, strict=True):
                found[place] = self.head(one[list(places[place])])
        return found

    def _in_batches(
        self, items: Sequence[list[int]], run: Callable[[list[list[int]]], Floats]
    ) -> tuple[list[list[int]], list[Floats]]:
        """Items of similar length together, one batch per core; which ones, and what `run` gives."""
        batches = similar([len(item) for item in items], cost=_MOST_COST)
        found: list[Future[Floats]] = []
        with ThreadPoolExecutor(self._workers.cores) as workers:
            for number, batch in enumerate(batches):
                if number >= self._workers.cores:
                    found[number - self._workers.cores].result()
                check_cancelled()  # a batch cannot be stopped once it has begun
                found.append(workers.submit(run, [items[place] for place in batch]))
        return batches, [future.result() for future in found]

    def _run(self, items: list[list[int]]) -> Floats:
        pooled = pool(self._states(items), [len(ids) for ids in items], self.pooling)
        return pooled if self.head is None else self.head(pooled)

    def _states(self, items: list[list[int]]) -> Floats:
        """(B, S, D), padding included."""
        output = self._encoder.forward_batch(items, token_type_ids=[self._segments(ids) for ids in items])
        return np.array(output.last_hidden_state, dtype=np.float32)

    def _segments(self, ids: list[int]) -> list[int]:
        """Which text of its input each token belongs to: an end of sentence ends one."""
        ends = np.array(ids) == EOS
        return [int(number) for number in np.minimum(np.cumsum(ends) - ends, self.segments - 1)]
