"""A network's answer to a fixed input: a fingerprint of its weights and of all that computes with them.

The card of an imported model keeps it, and whenever the model is loaded, it must still be the answer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from headwise.errors import ModelError
from headwise.models.interface import Network

GOLDEN = "golden"  # the key of the card
# How far another processor's rounding, or weights stored as float16, may move a number: a part of the spread of all.
_TOLERANCE = 0.01


def golden_output(network: Network) -> list[int]:
    """The index of the largest output at each position of the network's `probe`."""
    return [int(number) for number in _answers(network).argmax(-1)]


def check_golden(network: Network, golden: Any, place: Path) -> None:
    """Refuses a network whose answer is another one; what is not a list of answers is not compared."""
    if not isinstance(golden, list) or not all(type(number) is int for number in golden):
        return
    answers = _answers(network)
    positions, outputs = answers.shape
    if len(golden) == positions and all(0 <= number < outputs for number in golden):
        best, middle = answers.amax(-1), answers.median(-1).values
        chosen = answers[torch.arange(positions), torch.tensor(golden)]
        if bool((best - chosen <= _TOLERANCE * (best - middle)).all()):
            return
    found = [int(number) for number in answers.argmax(-1)]
    raise ModelError(
        f"{place}: the model answers {found} to a fixed input, but when it was published it answered {golden}; "
        "take another copy of the model"
    )


@torch.inference_mode()
def _answers(network: Network) -> Tensor:
    """(positions, outputs)."""
    states = network.states(*network.probe())
    outputs = network.output.logits(states) if hasattr(network, "output") else states
    if not bool(outputs.isfinite().all()):
        raise ModelError("the model's answers are NaN or infinite; take another copy of it")
    return outputs.reshape(-1, outputs.size(-1)).float()
