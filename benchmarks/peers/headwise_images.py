"""Headwise itself, run by benchmarks/images.py: updates as `train` has them, answers as `classify` has them."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measure_images import BETAS, CLIP, EPSILON, MEAN, RATE, STD, Classify, Step, main

import headwise
from headwise.bundle.assets import Assets
from headwise.bundle.weights import save_model
from headwise.config.cores import training_cores
from headwise.config.recipe import load_recipe
from headwise.config.schema import Training
from headwise.data.batch import Batch
from headwise.data.pixel_batches import NO_LABEL
from headwise.losses import class_loss
from headwise.models.vit import ViT
from headwise.training.device import keep_memory, prepare_worker
from headwise.training.loop import Hook, Trainer
from headwise.training.optimizers import build_optimizer
from headwise.training.step import Updater
from headwise.workflows.evaluate import evaluate
from headwise.workflows.train import train

RECIPE = "fashion-mnist"
PROBE, SKIPPED = 60, 20  # updates of the probe, of which the first do not count


def build(request: dict) -> tuple[Step, torch.nn.Module]:
    keep_memory()
    prepare_worker()
    model = ViT(**request["sizes"]).train()
    settings = Training(optimizer="adamw", betas=BETAS, epsilon=EPSILON, learning_rate=RATE)
    optimizer = build_optimizer(settings, model.parameters())
    workers = training_cores(request["threads"])
    updater = Updater(model, optimizer, loss=class_loss, clip_norm=CLIP, workers=workers)

    def step(pixels: torch.Tensor, labels: torch.Tensor) -> float:
        return updater(Batch.of((pixels,), labels, np.arange(len(labels)), 0, ignore=NO_LABEL), RATE).loss

    return step, model


def prepare(request: dict) -> tuple[Classify, torch.nn.Module]:
    """A whole classifier: from names of files to labels with probabilities."""
    sizes = request["sizes"]
    model = ViT(**sizes).eval()
    how = {"kind": "images", "size": sizes["image_size"], "channels": sizes["channels"], "mean": [MEAN], "std": [STD]}
    assets = Assets(labels=tuple(map(str, range(sizes["classes"]))), preprocessing=how)
    folder = Path(request["folder"]) / "model"
    save_model(folder, model, assets, family="vit", task="classify")
    classifier = headwise.load(folder)

    def classify(names: Sequence[str]) -> list[int]:
        return [int(answer.label) for answer in classifier.classify(names)]

    return classify, model


# ---- quality


class Clock(Hook):
    """Measures the processor time of the updates after the first ones."""

    def __init__(self) -> None:
        self.began = self.first = 0.0

    def begin(self, trainer: Trainer) -> None:
        self.began = time.process_time()

    def after_update(self, trainer: Trainer, *_: Any) -> None:
        if trainer.step == SKIPPED:
            self.first = time.process_time()
        self.last, self.steps = time.process_time(), trainer.step


def learn(request: dict, output: Path, steps: int) -> Clock:
    shutil.rmtree(output, ignore_errors=True)
    changes = {
        "data.images": f"{request['data']}/train-images-idx3-ubyte.gz",
        "data.test.images": f"{request['data']}/t10k-images-idx3-ubyte.gz", "training.steps": steps,
        "training.validate_every": steps, "training.save_every": steps, "training.threads": request["threads"],
    }  # fmt: skip
    recipe, base = load_recipe(RECIPE, [f"{name}={json.dumps(value)}" for name, value in changes.items()])
    clock = Clock()
    train(recipe, base, output, hooks=[clock])
    return clock


def quality(request: dict) -> dict:
    """The recipe with as many updates as fit into the minutes, then the test pictures."""
    folder = Path(request["folder"])
    probe = learn(request, folder / "probe", PROBE)
    budget = 60 * request["minutes"] * request["threads"]
    steps = max(8, int(budget * (PROBE - SKIPPED) / (probe.last - probe.first)))
    clock = learn(request, folder / "run", steps)
    model = folder / "run" / "model"
    scores = evaluate(str(model), images=f"{request['data']}/t10k-images-idx3-ubyte.gz").as_dict()
    parameters = sum(p.numel() for p in headwise.load(model).engine.network.parameters())
    minutes = (clock.last - clock.began) / 60 / request["threads"]
    return {"accuracy": scores["accuracy"], "minutes": minutes, "updates": steps, "parameters": parameters}


if __name__ == "__main__":
    text = sys.stdin.read()
    if json.loads(text)["work"] == "quality":
        print(json.dumps(quality(json.loads(text))), flush=True)
    else:
        main(build, prepare, text)
