"""Gradient × input: how much each input token contributed to each token that the model wrote.

It is a first-order estimate: scaling an input token's embedding by 1 + ε changes the log-odds of the written token by ε
times the saliency. Unlike an attention weight it includes every path through the network and has a sign. It uses
log-odds, log p/(1 - p), rather than log p, whose gradient vanishes where the model is confident.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from headwise.look.panels import Floats


def gradient_times_input(entrance: nn.Module, logits: Callable[[], Tensor], written: Tensor) -> Floats:
    """Computes the saliency (T, S): row t is for the token written[t], column s for input position s.

    `entrance` is the module that receives the input's embeddings (1, S, D); `logits()` runs the model, (T, V).
    """
    found: list[Tensor] = []

    def capture(module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        embeddings = inputs[0].detach().requires_grad_(True)
        found.append(embeddings)
        return (embeddings, *inputs[1:])

    hook = entrance.register_forward_pre_hook(capture)
    try:
        with torch.enable_grad():
            scores = log_odds(logits(), written)  # (T,)
    finally:
        hook.remove()
    rows = []
    for score in scores:  # one backward pass per token, to need the memory of a single pass
        (gradient,) = torch.autograd.grad(score, found[0], retain_graph=True)
        rows.append((gradient * found[0]).sum(dim=-1)[0].detach())  # (S,)
    result: Floats = torch.stack(rows).float().cpu().numpy().astype(np.float32)
    return result


def log_odds(logits: Tensor, written: Tensor) -> Tensor:
    """Computes log p/(1 - p) of the written token at each step, (T, V), (T,) -> (T,)."""
    own = written[:, None]
    others = logits.scatter(1, own, float("-inf")).logsumexp(dim=-1)
    return logits.gather(1, own)[:, 0] - others
