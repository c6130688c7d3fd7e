"""Hugging Face's Trainer and pipeline on BERT, run by benchmarks/classification.py.

The request's `what` is `labels` (fine-tune as the recipe says, the best epoch on the validation table, answer the test
table), `training` (time one epoch over some rows) or `answers` (time a classifier over the test table). The Trainer
groups by length if `grouped` says so; its own default are random batches, padded to the longest of each.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable

import torch
from measure_classification import main, read_table
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
    pipeline,
    set_seed,
)

LONGEST = 512


def answer(request: dict) -> dict:
    torch.set_num_threads(request["threads"])
    torch.set_flush_denormal(True)
    set_seed(1)
    return {"labels": labels, "training": training, "answers": answers}[request["what"]](request)


class Rows(torch.utils.data.Dataset):
    def __init__(self, tokenizer: AutoTokenizer, texts: list[str], codes: list[int]) -> None:
        self.ids, self.codes = tokenizer(texts, truncation=True, max_length=LONGEST)["input_ids"], codes

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, place: int) -> dict:
        ids = self.ids[place]
        return {"input_ids": ids, "attention_mask": [1] * len(ids), "labels": self.codes[place]}


def labels(request: dict) -> dict:
    names = sorted(set(read_table(request["train"])[1]))
    tokenizer, model = opened(request, names)
    tables = {part: rows(request[part], tokenizer, names) for part in ("train", "validation", "test")}
    with tempfile.TemporaryDirectory() as scratch:
        each = {
            "eval_strategy": "epoch", "save_strategy": "epoch", "save_total_limit": 1, "load_best_model_at_end": True,
            "metric_for_best_model": "accuracy", "num_train_epochs": request["epochs"],
        }  # fmt: skip
        trainer = trainer_of(request, scratch, tokenizer, model, tables["train"], each, tables["validation"])
        trainer.train()
        trainer.args.train_sampling_strategy = "random"  # grouped, answers come in the order of their lengths
        found = trainer.predict(tables["test"]).predictions.argmax(-1).tolist()
        best = trainer.state.best_metric
    return {"labels": [names[code] for code in found], "validation": best, "chosen": "the recipe's settings"}


def training(request: dict) -> dict:
    names = sorted(set(read_table(request["train"])[1]))
    tokenizer, model = opened(request, names)
    texts, found = read_table(request["train"])
    codes = [names.index(label) for label in found]
    warm, timed = (slice(0, request["warm"]), slice(request["warm"], request["warm"] + request["rows"]))
    seconds = 0.0
    for part in (warm, timed):
        data = Rows(tokenizer, texts[part], codes[part])
        with tempfile.TemporaryDirectory() as scratch:
            each = {"save_strategy": "no", "eval_strategy": "no", "num_train_epochs": 1}
            seconds = trainer_of(request, scratch, tokenizer, model, data, each).train().metrics["train_runtime"]
    return {"rows_per_second": request["rows"] / seconds}


def answers(request: dict) -> dict:
    names = sorted(set(read_table(request["train"])[1]))
    tokenizer, model = opened(request, names)
    texts, _ = read_table(request["test"])
    if request["grouped"]:
        run = by_length(tokenizer, model.eval(), request["batch"])
    else:
        classifier = pipeline("text-classification", model=model.eval(), tokenizer=tokenizer, device="cpu")

        def run(some: list[str]) -> None:
            classifier(some, batch_size=request["batch"], top_k=None)

    run(texts[: 2 * request["batch"]])
    began = time.perf_counter()
    run(texts)
    return {"rows_per_second": len(texts) / (time.perf_counter() - began)}


def by_length(tokenizer: AutoTokenizer, model: torch.nn.Module, batch: int) -> Callable[[list[str]], None]:
    """What somebody may write by hand instead of the pipeline."""

    def run(texts: list[str]) -> None:
        ids = tokenizer(texts, truncation=True, max_length=LONGEST)["input_ids"]
        order = sorted(range(len(ids)), key=lambda place: len(ids[place]))
        with torch.inference_mode():
            for start in range(0, len(order), batch):
                some = [{"input_ids": ids[place]} for place in order[start : start + batch]]
                model(**tokenizer.pad(some, return_tensors="pt")).logits.softmax(-1).tolist()

    return run


def opened(request: dict, names: list[str]) -> tuple:
    tokenizer = AutoTokenizer.from_pretrained(request["model"])
    model = AutoModelForSequenceClassification.from_pretrained(
        request["model"], num_labels=len(names), id2label=dict(enumerate(names)), attn_implementation="sdpa"
    )
    model.bert.embeddings.word_embeddings.weight.requires_grad = not request["frozen"]
    return tokenizer, model


def rows(file: str, tokenizer: AutoTokenizer, names: list[str]) -> Rows:
    texts, found = read_table(file)
    return Rows(tokenizer, texts, [names.index(label) for label in found])


def trainer_of(
    request: dict, scratch: str, tokenizer: AutoTokenizer, model: torch.nn.Module, data: Rows, each: dict,
    validation: Rows | None = None,
) -> Trainer:  # fmt: skip
    arguments = TrainingArguments(
        output_dir=scratch, per_device_train_batch_size=request["batch"], per_device_eval_batch_size=64,
        learning_rate=request["rate"], weight_decay=request["decay"], warmup_steps=request["warmup"],
        lr_scheduler_type="linear", label_smoothing_factor=request["smoothing"], max_grad_norm=1.0, use_cpu=True,
        train_sampling_strategy="group_by_length" if request["grouped"] else "random", optim="adamw_torch_fused",
        report_to=[], disable_tqdm=True, seed=1, logging_strategy="no", **each,
    )  # fmt: skip
    return Trainer(
        model, arguments, DataCollatorWithPadding(tokenizer), data, validation,
        compute_metrics=lambda found: {"accuracy": float((found.predictions.argmax(-1) == found.label_ids).mean())},
    )  # fmt: skip


if __name__ == "__main__":
    main(answer)
