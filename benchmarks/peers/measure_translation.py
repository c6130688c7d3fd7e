"""What all peers of benchmarks/translation.py share: the weights of a model directory, the batches, the clock.

A peer is a script that calls `main(build, decode)`. Standard input: a line {"model": directory, "sentences": [[ids]],
"threads"}, then a line [beam, batch, how many sentences] whenever it is the peer's turn; standard output: a line {}
when it is ready, then for each turn a line {"seconds", "outputs"}. Only torch and safetensors are used here: a peer's
environment has no Headwise.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

PAD, UNK, BOS, EOS = range(4)

Tensors = dict[str, torch.Tensor]
Ids = list[list[int]]
# The model, ids with the end of sentence and padding (B, S), lengths (B,), beam -> token ids of each sentence.
Decode = Callable[[Any, torch.Tensor, torch.Tensor, int], Ids]


def read_sizes(directory: Path) -> dict[str, Any]:
    sizes: dict[str, Any] = json.loads((directory / "config.json").read_text(encoding="utf-8"))["architecture"]
    return sizes


def fill(model: torch.nn.Module, directory: Path, ours: Callable[[str, Tensors], torch.Tensor | None]) -> None:
    """Copies our weights into a peer's model; `ours` finds them by its name, None for what we have not."""
    weights = load_file(directory / "model.safetensors")
    for name, tensor in model.state_dict().items():
        found = ours(name, weights)
        if found is not None:
            assert tensor.shape == found.shape, (name, tensor.shape, found.shape)
            tensor.copy_(found)


def translate(model: Any, decode: Decode, sentences: Ids, beam: int, batch: int) -> Ids:
    """Batches of similar lengths; each output ends before its end of sentence."""
    outputs: Ids = [[]] * len(sentences)
    order = sorted(range(len(sentences)), key=lambda i: -len(sentences[i]))
    for start in range(0, len(order), batch):
        places = order[start : start + batch]
        lengths = torch.tensor([len(sentences[place]) + 1 for place in places])
        ids = torch.full((len(places), int(lengths.max())), PAD)
        for row, place in enumerate(places):
            ids[row, : lengths[row]] = torch.tensor([*sentences[place], EOS])
        for place, said in zip(places, decode(model, ids, lengths, beam), strict=True):
            outputs[place] = said[: said.index(EOS)] if EOS in said else said
    return outputs


def main(build: Callable[[Path], Any], decode: Decode) -> None:
    request = json.loads(sys.stdin.readline())
    torch.set_num_threads(request["threads"])
    with torch.inference_mode():
        model = build(Path(request["model"]))
        translate(model, decode, request["sentences"][:8], 2, 8)  # warm up
        print("{}", flush=True)
        for line in sys.stdin:
            beam, batch, count = json.loads(line)
            start = time.perf_counter()
            outputs = translate(model, decode, request["sentences"][:count], beam, batch)
            print(json.dumps({"seconds": time.perf_counter() - start, "outputs": outputs}), flush=True)
