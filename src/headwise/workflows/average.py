"""`headwise average`: averages several checkpoints into one model directory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headwise.bundle.assets import Assets
from headwise.bundle.averaging import average_weights
from headwise.bundle.weights import save_model
from headwise.errors import UsageError
from headwise.models.registry import build_model


def average(checkpoints: Sequence[Path], output: Path) -> None:
    """Writes the mean of the weights, with the description, tokenizers and labels of the last checkpoint."""
    if output.exists():
        raise UsageError(f"{output} already exists; choose a new directory")
    bundle, weights = average_weights(checkpoints)
    card = {**bundle.card, "average": [str(path) for path in checkpoints]}
    save_model(
        output, build_model(bundle.family, bundle.architecture), Assets.load(bundle.path), family=bundle.family,
        task=bundle.task, languages=bundle.languages, decoding=bundle.decoding, card=card, weights=weights,
    )  # fmt: skip
