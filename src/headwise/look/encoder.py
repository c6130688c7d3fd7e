"""Looks inside an encoder that classifies: attention in one text, and which of its tokens speak for a label."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from headwise.errors import UsageError
from headwise.look.capture import Look, Steps
from headwise.look.panels import Floats
from headwise.look.saliency import gradient_times_input
from headwise.look.token_labels import Reading, Token
from headwise.models.interface import Network
from headwise.nn import capture_attention
from headwise.text.tokenizer import Tokenizer


def look_at_label(model: Network, tokenizer: Tokenizer, ids: Sequence[int], label: str, answer: int) -> Look:
    """Runs one pass over an input with its special tokens; saliency (1, S) is that of the class `answer`."""
    model.eval()
    text = torch.tensor([list(ids)], device=next(model.parameters()).device)
    with torch.no_grad(), capture_attention(model) as captured:
        chances = model(text)[0].float().softmax(dim=-1)
    attention = {
        kind: np.stack([captured[name][0][0].float().cpu().numpy() for name in names])
        for kind, names in model.attention_names().items()
    }

    def find_saliency() -> Floats:
        entrance = model.entrance()
        if entrance is None:
            raise UsageError("saliency is not available: this family does not define where its embeddings enter")
        return gradient_times_input(entrance, lambda: model(text), torch.tensor([answer], device=text.device))

    chance = float(chances[answer])
    said = Reading([Token(label, label)], [[0]], label)
    steps = Steps(np.array([chance], dtype=np.float32), [[(label, chance)]])
    return Look(Reading.of(tokenizer, ids), said, said, attention, None, steps, find_saliency)
