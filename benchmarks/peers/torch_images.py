"""A plain ViT on torch.nn.TransformerEncoder and a small CNN, run by benchmarks/images.py for quality at equal minutes.

The loop is plain PyTorch with all that the recipe of Headwise has: mirrored and shifted pictures, AdamW with a cosine
schedule that ends with the minutes, label smoothing, clipped gradients, averaged weights.
"""

from __future__ import annotations

import gzip
import json
import math
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

# As in src/headwise/config/recipes/fashion-mnist.toml.
BATCH, SHIFT, DECAY, SMOOTHING, CLIP, EMA, WARMUP = 64, 1, 0.05, 0.05, 1.0, 0.998, 0.08
RATE = 2e-3
PROBE, SKIPPED = 60, 20  # updates of the probe, of which the first do not count


class PlainViT(nn.Module):
    """Patches of 4 × 4, [CLS], learned positions and pre-norm layers: 0.41 million weights."""

    def __init__(self, width: int = 128, heads: int = 4, layers: int = 3, inner: int = 256, patch: int = 4) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, width, patch, stride=patch)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, 1 + (28 // patch) ** 2, width) * 0.02)
        layer = nn.TransformerEncoderLayer(
            width, heads, inner, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.output = nn.Linear(width, 10)

    def forward(self, pixels: Tensor) -> Tensor:
        x = self.patches(pixels).flatten(2).transpose(1, 2)
        x = torch.cat((self.first.expand(len(x), -1, -1), x), dim=1) + self.positions
        return self.output(self.encoder(x)[:, 0])


def small_cnn() -> nn.Module:
    """Three blocks of convolution, batch norm and pooling, then two linear maps: 0.43 million weights."""
    blocks: list[nn.Module] = []
    for before, after in ((1, 48), (48, 96), (96, 192)):
        blocks += [
            nn.Conv2d(before, after, 3, padding=1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ]
    return nn.Sequential(*blocks, nn.Flatten(), nn.Linear(192 * 3 * 3, 128), nn.ReLU(), nn.Linear(128, 10))


MODELS = {"vit": PlainViT, "cnn": small_cnn}


def read(folder: Path, part: str) -> tuple[Tensor, Tensor]:
    """Normalised pictures (N, 1, 28, 28) and labels."""
    with gzip.open(folder / f"{part}-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(), dtype=np.uint8, offset=16).reshape(-1, 1, 28, 28)
    with gzip.open(folder / f"{part}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), dtype=np.uint8, offset=8)
    return (torch.from_numpy(pixels.copy()).float() / 255 - 0.286) / 0.353, torch.from_numpy(labels.copy()).long()


def augment(pixels: Tensor) -> Tensor:
    """Mirrors half of the pictures and shifts each by itself; what comes in is black."""
    count, size = len(pixels), pixels.size(-1)
    padded = F.pad(pixels[:, 0], (SHIFT,) * 4, value=float((0 - 0.286) / 0.353))
    first = torch.randint(0, 2 * SHIFT + 1, (2, count, 1)) + torch.arange(size)  # rows and columns
    shifted = padded[torch.arange(count)[:, None, None], first[0][:, :, None], first[1][:, None, :]][:, None]
    mirrored = torch.rand(count) < 0.5
    return torch.where(mirrored[:, None, None, None], shifted.flip(-1), shifted)


def train(kind: str, pixels: Tensor, labels: Tensor, steps: int) -> tuple[nn.Module, float, float]:
    """The averaged model, the processor seconds of all updates, and those of the updates after the first ones."""
    torch.manual_seed(1)
    model = MODELS[kind]().train()
    averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(EMA), use_buffers=True)
    optimizer = torch.optim.AdamW(model.parameters(), RATE, (0.9, 0.98), 1e-8, DECAY, fused=True)
    warmup = max(1, round(WARMUP * steps))
    order, began, later = torch.empty(0, dtype=torch.int64), time.process_time(), 0.0
    for step in range(1, steps + 1):
        if len(order) < BATCH:
            order = torch.randperm(len(pixels))
        rows, order = order[:BATCH], order[BATCH:]
        falling = 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))
        optimizer.param_groups[0]["lr"] = RATE * (step / warmup if step < warmup else falling)
        loss = F.cross_entropy(model(augment(pixels[rows])), labels[rows], label_smoothing=SMOOTHING)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        averaged.update_parameters(model)
        if step == SKIPPED:
            later = time.process_time()
    ended = time.process_time()
    return averaged, ended - began, ended - later


@torch.inference_mode()
def accuracy(model: nn.Module, pixels: Tensor, labels: Tensor) -> float:
    model.eval()
    answers = torch.cat([model(some).argmax(dim=1) for some in pixels.split(500)])
    return float((answers == labels).float().mean())


def main() -> None:
    request = json.load(sys.stdin)
    torch.set_num_threads(request["threads"])
    torch.set_flush_denormal(True)
    folder, kind = Path(request["data"]), request["sizes"]["model"]
    pixels, labels = read(folder, "train")
    _, _, later = train(kind, pixels, labels, PROBE)
    budget = 60 * request["minutes"] * request["threads"]
    steps = max(8, int(budget * (PROBE - SKIPPED) / later))
    model, seconds, _ = train(kind, pixels, labels, steps)
    parameters = sum(p.numel() for p in model.module.parameters())
    right = accuracy(model, *read(folder, "t10k"))
    minutes = seconds / 60 / request["threads"]
    figures = {"accuracy": right, "minutes": minutes, "updates": steps, "parameters": parameters}
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
