"""The mean of several checkpoints' weights, which often beats each of them (the paper's section 6.1)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from headwise.bundle.assets import LABELS, PREPROCESSING
from headwise.bundle.checkpoint import MODEL, load_tensors
from headwise.bundle.directory import CONFIG, TOKENIZERS, WEIGHTS, Bundle, open_bundle
from headwise.bundle.weights import check_weights
from headwise.errors import ModelError, UsageError


def model_directory(path: Path) -> Path:
    """A checkpoint has its model directory inside; a model directory is one itself."""
    return path / MODEL if os.path.isfile(path / MODEL / CONFIG) else path


def average_weights(paths: Sequence[Path]) -> tuple[Bundle, dict[str, Tensor]]:
    """The newest bundle's description and the mean of all weights; they must be of one architecture."""
    if not paths:
        raise UsageError("averaging needs at least one checkpoint or model directory")
    sums: dict[str, Tensor] = {}
    last: Bundle | None = None
    for path in paths:
        bundle = open_bundle(model_directory(path))
        if last is not None and (bundle.architecture, bundle.family) != (last.architecture, last.family):
            raise ModelError(
                f"{path} differs in architecture from {last.path}; only models of the same architecture can be averaged"
            )
        if last is not None and _assets(bundle) != _assets(last):
            raise ModelError(
                f"{path} differs in its tokenizer or labels from {last.path}; only models of one run can be averaged"
            )
        last = bundle
        check_weights(bundle)
        tensors = load_tensors(bundle.path / WEIGHTS)
        if sums and {n: t.shape for n, t in tensors.items()} != {n: t.shape for n, t in sums.items()}:
            raise ModelError(f"{path} is damaged: its weights do not fit its architecture; take another copy")
        for name, tensor in tensors.items():
            # Sums in float64: the mean then does not depend on the order.
            sums[name] = tensor.double() if name not in sums else sums[name].add_(tensor)
    assert last is not None
    return last, {name: (total / len(paths)).to(torch.float32) for name, total in sums.items()}


def _assets(bundle: Bundle) -> dict[str, str]:
    """The hashes of what stands beside the weights."""
    names = (*TOKENIZERS, LABELS, PREPROCESSING)
    return {name: digest for name, digest in bundle.files.items() if name in names}
