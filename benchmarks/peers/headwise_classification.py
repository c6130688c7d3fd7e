"""Headwise itself, run by benchmarks/classification.py: batches and updates as `headwise train` has them.

The request's `what` is `training` (time one epoch over some rows) or `answers` (time a classifier over the test table).
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import torch
from measure_classification import main, read_table

from headwise.bundle.assets import Assets
from headwise.bundle.directory import open_bundle
from headwise.bundle.weights import start_from
from headwise.config.cores import training_cores
from headwise.config.recipe import load_recipe
from headwise.data.cursor import Cursor
from headwise.losses import class_loss
from headwise.tasks.classify import TASK
from headwise.training.device import keep_memory, prepare_worker
from headwise.training.freezing import freeze
from headwise.training.optimizers import build_optimizer
from headwise.training.step import Updater
from headwise.workflows.load import load


def answer(request: dict) -> dict:
    torch.manual_seed(1)
    return {"training": training, "answers": answers}[request["what"]](request)


def training(request: dict) -> dict:
    keep_memory()
    prepare_worker()
    recipe, base = load_recipe(request["recipe"], [f"model.from={request['model']}"])
    start = open_bundle(request["model"])
    seconds = 0.0
    with tempfile.TemporaryDirectory() as scratch:
        prepared = TASK.prepare(recipe, base, Path(scratch), start=Assets.load(start.path))
        model, _ = start_from(start, TASK.sizes(prepared.assets, recipe))
        freeze(model.train(), recipe.training.freeze)
        settings = recipe.training
        optimizer = build_optimizer(settings, [p for p in model.parameters() if p.requires_grad])
        updater = Updater(
            model, optimizer, loss=class_loss, smoothing=settings.label_smoothing, clip_norm=settings.clip_norm,
            workers=training_cores(request["threads"]),
        )  # fmt: skip
        # As many batches as hold the rows asked for, all of a shuffled epoch; the first ones warm up.
        batches = TASK.batches(prepared.training, recipe, prepared.assets, model.max_length)
        done = timed = step = 0
        while timed < request["rows"]:
            began = time.perf_counter()
            batch = batches.make(Cursor(0, step))
            updater(batch, settings.learning_rate, step)
            if done >= request["warm"]:
                seconds, timed = seconds + time.perf_counter() - began, timed + len(batch.targets)
            done, step = done + len(batch.targets), step + 1
    return {"rows_per_second": timed / seconds, "rows_per_batch": done / step}


def answers(request: dict) -> dict:
    texts, _ = read_table(request["test"])
    classifier = load(request["trained"], engine=request["engine"])
    classifier.classify(texts[:64])
    began = time.perf_counter()
    classifier.classify(texts)
    return {"rows_per_second": len(texts) / (time.perf_counter() - began)}


if __name__ == "__main__":
    main(answer)
