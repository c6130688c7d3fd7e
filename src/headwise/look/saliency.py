"""Gradient × input: how much each input token moved the model towards each token that it wrote.

A first-order answer: the log-probability of a token would change by about the negative of its saliency if the input
token's embedding were taken away. Unlike attention weights it counts every way through the network, and has a sign.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from headwise.look.panels import Floats


def gradient_times_input(entrance: nn.Module, logits: Callable[[], Tensor], written: Tensor) -> Floats:
    """(T, S): row t is about token written[t], column s about input position s.

    `entrance` is the module that receives the input's embeddings (1, S, D); `logits()` runs the model, (T, V).
    """
    found: list[Tensor] = []

    def take_hold(module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        embeddings = inputs[0].detach().requires_grad_(True)
        found.append(embeddings)
        return (embeddings, *inputs[1:])

    hook = entrance.register_forward_pre_hook(take_hold)
    try:
        with torch.enable_grad():
            scores = logits().log_softmax(dim=-1).gather(1, written[:, None])[:, 0]  # (T,)
    finally:
        hook.remove()
    rows = []
    for score in scores:  # one backward pass a token: memory stays that of a single pass
        (gradient,) = torch.autograd.grad(score, found[0], retain_graph=True)
        rows.append((gradient * found[0]).sum(dim=-1)[0].detach())  # (S,)
    result: Floats = torch.stack(rows).float().cpu().numpy().astype(np.float32)
    return result
