"""Runs an exported encoder with CTranslate2; pooling and labels are computed here. Does not import torch."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ctranslate2
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from headwise.bundle.directory import WEIGHTS, Bundle
from headwise.cancellation import check_cancelled
from headwise.decoding.ctranslate2_workers import Workers
from headwise.decoding.item_batches import similar
from headwise.errors import ModelError
from headwise.text.tokenizer import EOS

Floats = NDArray[np.float32]
_HEAD = ("pooler.dense.weight", "pooler.dense.bias", "output.linear.weight", "output.linear.bias")


class CTranslate2Encoder:
    """Answers with logits of labels, or with the pooled states of each text where `vectors` are asked for."""

    name = "ctranslate2"

    def __init__(self, directory: Path, bundle: Bundle, *, vectors: bool = False) -> None:
        self._workers = Workers(ctranslate2.Encoder, directory)
        self._encoder = self._workers.engine
        self.segments = int(bundle.architecture["segments"])
        trained_for_them = bundle.architecture.get("classes") == 0
        self.pooling = str(bundle.architecture["pooling"]) if trained_for_them or not vectors else "mean"
        self.head = {} if vectors else _read_head(bundle)

    def answers(self, items: Sequence[list[int]]) -> Floats:
        """One row of numbers per item, in the order of the items."""
        check_cancelled()  # a call cannot be stopped once it has begun
        batches = similar([len(item) for item in items])
        with ThreadPoolExecutor(self._workers.cores) as pool:
            rows = list(pool.map(lambda batch: self._run([items[place] for place in batch]), batches))
        found = np.empty((len(items), rows[0].shape[1] if rows else 0), dtype=np.float32)
        for batch, answer in zip(batches, rows, strict=True):
            found[batch] = answer
        return found

    def _run(self, items: list[list[int]]) -> Floats:
        output = self._encoder.forward_batch(items, token_type_ids=[self._segments(ids) for ids in items])
        states = np.array(output.last_hidden_state, dtype=np.float32)  # (B, S, D)
        if self.pooling == "first":
            pooled = states[:, 0]
        else:
            lengths = np.array([len(ids) for ids in items])
            real = np.arange(states.shape[1]) < lengths[:, None]  # (B, S)
            pooled = np.einsum("bs,bsd->bd", real.astype(np.float32), states) / np.maximum(lengths, 1)[:, None]
        return self._labels(pooled.astype(np.float32)) if self.head else pooled.astype(np.float32)

    def _labels(self, pooled: Floats) -> Floats:
        if "pooler.dense.weight" in self.head:
            pooled = np.tanh(pooled @ self.head["pooler.dense.weight"].T + self.head["pooler.dense.bias"])
        return np.asarray(pooled @ self.head["output.linear.weight"].T + self.head["output.linear.bias"])

    def _segments(self, ids: list[int]) -> list[int]:
        """Which text of its input each token belongs to: an end of sentence ends one."""
        ends = np.array(ids) == EOS
        return [int(number) for number in np.minimum(np.cumsum(ends) - ends, self.segments - 1)]


def _read_head(bundle: Bundle) -> dict[str, Floats]:
    file = bundle.path / WEIGHTS
    try:
        with safe_open(file, framework="np") as stored:
            names = [name for name in _HEAD if name in stored.keys()]  # noqa: SIM118
            head = {name: np.asarray(stored.get_tensor(name), dtype=np.float32) for name in names}
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{file} cannot be read: {error}; take another copy of the model") from error
    if "output.linear.weight" not in head:
        raise ModelError(f"{file} has no weights for labels; take another copy of the model")
    return head
