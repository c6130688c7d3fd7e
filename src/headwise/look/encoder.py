"""Looks inside an encoder: attention in one text, and which of its tokens speak for a label."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from headwise.errors import UsageError
from headwise.look.capture import Look, Steps, attention_by_kind
from headwise.look.panels import Booleans, Floats
from headwise.look.saliency import gradient_times_input
from headwise.look.token_labels import Reading, Token
from headwise.models.interface import Network
from headwise.nn import capture_attention
from headwise.text.tokenizer import Tokenizer


def look_at_input(model: Network, tokenizer: Tokenizer, ids: Sequence[int]) -> Look:
    """Runs one pass over an input with its special tokens, of a model that has no label to ask about."""
    model.eval()
    text = torch.tensor([list(ids)], device=next(model.parameters()).device)
    with torch.no_grad():
        attention, allowed = _attention(model, text)

    def find_saliency() -> Floats:
        raise UsageError("saliency needs a label; this model has none: look at its attention")

    read = Reading.of(tokenizer, ids)
    said = Reading([Token(read.text, read.text)], [[0]], read.text)
    steps = Steps(np.zeros(1, dtype=np.float32), [[]])
    return Look(read, said, said, attention, None, steps, find_saliency, allowed=allowed)


def look_at_label(
    model: Network, tokenizer: Tokenizer, ids: Sequence[int], label: str, answer: int, chance: float
) -> Look:
    """Runs one pass over an input with its special tokens; saliency (1, S) is that of the class `answer`.

    `chance` is the probability of that class as the classifier gives it: calibrated, which the network's is not.
    """
    model.eval()
    text = torch.tensor([list(ids)], device=next(model.parameters()).device)
    with torch.no_grad():
        attention, allowed = _attention(model, text)

    def find_saliency() -> Floats:
        entrance = model.entrance()
        if entrance is None:
            raise UsageError("saliency is not available: this family does not define where its embeddings enter")
        return gradient_times_input(entrance, lambda: model(text), torch.tensor([answer], device=text.device))

    said = Reading([Token(label, label)], [[0]], label)
    steps = Steps(np.array([chance], dtype=np.float32), [[(label, chance)]])
    known = model.entrance() is not None
    read = Reading.of(tokenizer, ids)
    return Look(read, said, said, attention, None, steps, find_saliency, allowed=allowed, labels=known)


def _attention(model: Network, text: Tensor) -> tuple[dict[str, Floats], dict[str, Booleans]]:
    """The weights of every layer and head by kind, and what may attend: (L, H, S, S) each."""
    with capture_attention(model) as captured:
        model.states(text)
    return attention_by_kind(model, captured)
