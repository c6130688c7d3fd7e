"""What the peers of benchmarks/time_to_quality.py share: a training loop with a clock, and greedy decoding.

A contestant is a script that calls `main(build, predict)`, with the `build` of its contest in speed. Standard input: a
request in JSON; standard output: a line of JSON for every validation, with the minutes and updates so far and the token
ids of the translations. The clock stands while batches are made and while translations are.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import torch
from measure_training import BOS, EOS, Batch, Step, make, pad, side_of
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

# (model, sources, their lengths, what is said so far) -> logits of the next token, (B, V)
Predict = Callable[[nn.Module, Tensor, Tensor, Tensor], Tensor]
SENTENCES = 128  # decoded at once
EXTRA = 50  # longest output: the source's length plus this


def main(build: Callable[[dict], tuple[Step, nn.Module]], predict: Predict) -> None:
    request = json.load(sys.stdin)
    torch.set_num_threads(request["threads"])
    torch.set_flush_denormal(True)  # before the first parallel work: threads inherit it
    torch.manual_seed(request["seed"])
    step, model = build(request)
    register_optimizer_step_pre_hook(inverse_square_root(request["rate"], request["warmup"]))
    with np.load(request["ids"]) as arrays:
        ids = dict(arrays)
    train(request, ids, step, model, predict)


def train(request: dict, ids: dict[str, np.ndarray], step: Step, model: nn.Module, predict: Predict) -> None:
    spent, due = 0.0, 60 * request["every"]
    for updates, batch in enumerate(batches(ids), start=1):
        model.train()
        began = time.perf_counter()
        step(batch)
        spent += time.perf_counter() - began
        if spent >= due:
            due += 60 * request["every"]
            outputs = translate(model, predict, ids)
            print(json.dumps({"minutes": spent / 60, "updates": updates, "outputs": outputs}), flush=True)
        if spent >= 60 * request["minutes"]:
            return


def inverse_square_root(peak: float, warmup: int) -> Callable:
    """Linear to the peak, then with the root of the updates; set from outside, so that each peer keeps its own step."""
    updates = 0

    def set_rate(optimizer: torch.optim.Optimizer, *_: object) -> None:
        nonlocal updates
        updates += 1
        for group in optimizer.param_groups:
            group["lr"] = peak * min(updates / warmup, (warmup / updates) ** 0.5)

    return set_rate


def batches(ids: dict[str, np.ndarray]) -> Iterator[Batch]:
    """Headwise's batches, in its order, epoch after epoch; after the last epoch that was planned, from the first on."""
    order, cuts = ids["order"], ids["cuts"]
    while True:
        for first, last in pairwise(cuts):
            yield make(ids, order[first:last])


@torch.no_grad()
def translate(model: nn.Module, predict: Predict, ids: dict[str, np.ndarray]) -> list[list[int]]:
    """Greedy, the whole output anew for every token: slow, but the clock stands."""
    model.eval()
    sources = [side_of(ids, "validation", row) for row in range(len(ids["validation_offsets"]) - 1)]
    outputs: list[list[int]] = [[] for _ in sources]
    by_length = sorted(range(len(sources)), key=lambda row: len(sources[row]))
    for start in range(0, len(by_length), SENTENCES):
        rows = by_length[start : start + SENTENCES]
        for row, output in zip(rows, greedy(model, predict, [sources[row] for row in rows]), strict=True):
            outputs[row] = output
    return outputs


def greedy(model: nn.Module, predict: Predict, sources: list[list[int]]) -> list[list[int]]:
    source = pad([[*sentence, EOS] for sentence in sources])
    lengths = torch.tensor([len(sentence) + 1 for sentence in sources])
    outputs: list[list[int]] = [[] for _ in sources]
    rows = torch.arange(len(sources))  # those that go on
    said = torch.full((len(sources), 1), BOS)
    while len(rows) and said.size(1) <= int(lengths.max()) + EXTRA:
        longest = int(lengths[rows].max())
        token = predict(model, source[rows, :longest], lengths[rows], said).argmax(dim=-1)
        going = token != EOS
        rows, said = rows[going], torch.cat((said, token[:, None]), dim=1)[going]
        for row, tokens in zip(rows.tolist(), said[:, 1:].tolist(), strict=True):
            outputs[row] = tokens
    return outputs
