"""The task `classify`: one label for each text or picture, with any network that has an output per class.

What is read, and how, is the matter of `tasks/inputs/`; this knows labels alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headwise.bundle.assets import Assets
from headwise.bundle.directory import Bundle
from headwise.config.schema import Recipe
from headwise.errors import ModelError, UsageError, WorkFailed
from headwise.evaluation.classification import (
    Confusion,
    calibration_error,
    fit_temperature,
    log_loss,
    signature,
    softmax,
)
from headwise.evaluation.contamination import Overlap, seen_in_training
from headwise.tasks.automatic import Choice, DataFacts
from headwise.tasks.classifier import Classifier
from headwise.tasks.inputs import inputs_of_model, inputs_of_recipe, inputs_of_store
from headwise.tasks.interface import (
    Examined,
    Items,
    Measured,
    OnProgress,
    Prepared,
    Progress,
    Seen,
    Task,
    trained_columns,
)
from headwise.tasks.served_encoders import ServedClassifier

if TYPE_CHECKING:
    from headwise.data.batch import Batch
    from headwise.data.chunks import TextStream
    from headwise.data.cursor import Batches
    from headwise.losses import BatchLoss, Loss
    from headwise.models.interface import Network

ENGINES = ("auto", "torch", "ctranslate2")
_CHUNK = 1024  # items evaluated between two reports of progress


@dataclass(frozen=True)
class ClassScores:
    """How often a classifier is right, and how sure it should be."""

    confusion: Confusion
    log_loss: float
    calibration_error: float
    signature: str
    overlap: Overlap | None = None

    def lines(self) -> list[str]:
        found = self.confusion
        width = max(len(label) for label in found.labels)
        table = [
            f"{one.label:<{width}}  {one.precision:9.4f}  {one.recall:6.4f}  {one.f1:6.4f}  {one.rows:5,}"
            for one in found.per_label()
        ]
        wrong = [f"{times:5,} × {label} → {answer}" for label, answer, times in found.worst()]
        return [
            f"accuracy           {found.accuracy:.4f}  {self.signature}",
            f"macro-F1           {found.macro_f1:.4f}",
            f"log-loss           {self.log_loss:.4f}",
            f"calibration error  {self.calibration_error:.4f}",
            "",
            f"{'label':<{width}}  precision  recall      F1   rows",
            *table,
            *(["", "most frequent mistakes:", *wrong] if wrong else []),
        ]

    def picture(self, path: str) -> None:
        """Draws the confusion matrix: of each label (row) the share of each answer (column)."""
        from headwise.look.panels import Panel
        from headwise.look.pictures import panels_picture

        matrix = self.confusion.matrix
        shares = (matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)).astype(np.float32)
        labels = self.confusion.labels
        panel = Panel("confusion", "Confusion", shares[None, None], labels, labels, "label", "answer", numbered=False)
        panels_picture([panel], path)

    def as_dict(self) -> dict[str, Any]:
        return {
            "accuracy": self.confusion.accuracy,
            "macro_f1": self.confusion.macro_f1,
            "log_loss": self.log_loss,
            "calibration_error": self.calibration_error,
            "rows": self.confusion.rows,
            "signature": self.signature,
            "labels": [asdict(one) for one in self.confusion.per_label()],
            "confusion": self.confusion.matrix.tolist(),
            "overlap": None if self.overlap is None else self.overlap.as_dict(),
        }


class Classify(Task):
    """Classification: learns from labelled items, is scored by accuracy and macro-F1."""

    name = "classify"
    reads = (("table",), ("images",))
    scores = ("accuracy", "macro_f1")

    # ---- training

    def check(self, recipe: Recipe) -> None:
        inputs_of_recipe(recipe).check(recipe)

    def automatic(self, recipe: Recipe, facts: DataFacts) -> list[Choice]:
        best = Choice("training.best", "accuracy", "what a classifier is for")
        return [*inputs_of_recipe(recipe).automatic(recipe, facts), best]

    def examine(self, recipe: Recipe, base: Path, on_progress: OnProgress | None = None) -> Examined:
        return inputs_of_recipe(recipe).examine(recipe, base, on_progress)

    def prepare(
        self, recipe: Recipe, base: Path, cache: Path, *, start: Assets | None = None, progress: Progress | None = None
    ) -> Prepared:
        return inputs_of_recipe(recipe).prepare(recipe, base, cache, start=start, progress=progress)

    def tokenizer_text(self, recipe: Recipe, base: Path) -> tuple[TextStream, str] | None:
        return inputs_of_recipe(recipe).tokenizer_text(recipe, base)

    def open_store(self, directory: Path) -> Items:
        return inputs_of_store(directory).open_store(directory)

    def training_lines(self, recipe: Recipe, base: Path) -> tuple[str, Iterator[str]] | None:
        return inputs_of_recipe(recipe).training_lines(recipe, base)

    def sizes(self, assets: Assets, recipe: Recipe) -> dict[str, Any]:
        return {**inputs_of_recipe(recipe).sizes(assets), "classes": len(assets.labels)}

    def batches(
        self,
        store: Any,
        recipe: Recipe,
        assets: Assets,
        max_length: int | None,
        *,
        rank: int = 0,
        world: int = 1,
        shuffle: bool = True,
    ) -> Batches:
        kind = inputs_of_recipe(recipe)
        return kind.batches(store, recipe, assets, max_length, rank=rank, world=world, shuffle=shuffle)

    def loss(self, network: Network, batch: Batch, smoothing: float) -> BatchLoss:
        from headwise.losses import class_loss

        return class_loss(network, batch, smoothing)

    def objective(self, recipe: Recipe, prepared: Prepared) -> Loss:
        """With training.class_weights = "balanced" all labels together count alike, and a row 1 on average."""
        if recipe.training.class_weights == "none":
            return self.loss
        import torch

        from headwise.losses import class_loss

        labels = len(prepared.assets.labels)
        counts = inputs_of_recipe(recipe).label_counts(prepared.training, labels)
        weights = counts.sum() / (np.maximum(counts, 1) * max(1, np.count_nonzero(counts)))
        return partial(class_loss, weights=torch.from_numpy(weights.astype(np.float32)))

    def scorer(self, network: Network, assets: Assets, recipe: Recipe) -> LabelScorer:
        return LabelScorer(assets.labels)

    def describe(self, model: Path, recipe: Recipe, prepared: Prepared) -> dict[str, Any]:
        """Fits the temperature of the probabilities on the validation data."""
        if prepared.validation is None:
            return {}
        import torch

        from headwise.bundle.directory import open_bundle
        from headwise.bundle.weights import load_model
        from headwise.data.cursor import Cursor

        network = load_model(open_bundle(model))
        batches = self.batches(prepared.validation, recipe, prepared.assets, network.max_length, shuffle=False)
        logits, truth = [], []
        with torch.inference_mode():
            for index in range(batches.count(0)):
                batch = batches.make(Cursor(0, index))
                logits.append(network(*batch.inputs).numpy())
                truth.append(batch.targets.numpy())
        return {"temperature": round(fit_temperature(np.concatenate(logits), np.concatenate(truth)), 4)}

    # ---- using a model

    def open(
        self, bundle: Bundle, engine: str = "auto", *, precision: str = "int8", device: str = "cpu", **options: Any
    ) -> Classifier:
        """Opens a classifier; `auto` is ctranslate2 where it can run the model."""
        if engine not in ENGINES:
            raise UsageError(f"unknown engine '{engine}'; choose one of {', '.join(ENGINES)}")
        assets = Assets.load(bundle.path)
        if len(assets.labels) != bundle.architecture.get("classes"):
            raise ModelError(
                f"{bundle.path} has {len(assets.labels)} labels, but {bundle.architecture.get('classes')} classes; "
                "take another copy of the model"
            )
        inputs = inputs_of_model(assets)
        if engine != "torch":
            try:
                return Classifier(bundle, assets, inputs, inputs.fast_engine(bundle, assets, precision))
            except (WorkFailed, UsageError):
                if engine == "ctranslate2":
                    raise
        from headwise.bundle.weights import load_model
        from headwise.decoding.encoder_engine import TorchEncoder

        network = load_model(bundle, device)
        return Classifier(bundle, assets, inputs, TorchEncoder(network, inputs.tensors, inputs.cost))

    def unit(self, assets: Assets) -> str:
        return inputs_of_model(assets).unit

    def evaluate(self, bundle: Bundle, on_progress: OnProgress | None = None, **asked: Any) -> ClassScores:
        """Classifies the rows of the file `table` (or what `images` names) and compares with their labels."""
        engine, columns = asked.pop("engine", "torch"), tuple(asked.pop("columns", ()) or trained_columns(bundle))
        precision = asked.pop("precision", "float32")
        opened = self.open(bundle, "torch" if engine == "auto" else engine, precision=precision)
        files = asked.pop(opened.inputs.field, "")
        if not files or asked:
            raise UsageError(f"{bundle.path} is a classifier: evaluate it with --{opened.inputs.field} FILE only")
        return self._judge(opened, [files] if isinstance(files, str) else files, columns, precision, on_progress)[0]

    def measure(self, bundle: Bundle, files: Mapping[str, Sequence[str]], engine: str = "torch") -> Measured:
        precision = "int8" if engine == "ctranslate2" else "float32"
        opened = self.open(bundle, engine, precision=precision)
        scores, answers = self._judge(opened, files[opened.inputs.field], trained_columns(bundle), precision)
        figures = (("accuracy", scores.confusion.accuracy), ("macro-F1", scores.confusion.macro_f1))
        return Measured(
            tuple((name, 100 * value, scores.signature) for name, value in figures),
            tuple(opened.labels[code] for code in answers), scores.overlap,
        )  # fmt: skip

    def _judge(
        self, opened: Classifier, files: Sequence[str], columns: tuple[str, ...], precision: str,
        on_progress: OnProgress | None = None,
    ) -> tuple[ClassScores, list[int]]:  # fmt: skip
        """Classifies the rows of files, and compares with their labels; also returns the answers."""
        bundle = opened.bundle
        assets = replace(opened.assets, labels=numbered_labels(bundle, opened.labels))
        examples = opened.inputs.examples(list(files), assets, columns)
        parts = []
        for start in range(0, len(examples.items), _CHUNK):
            parts.append(opened.logits(examples.items[start : start + _CHUNK]))
            if on_progress is not None:
                on_progress(len(parts[-1]))
        logits, codes = np.concatenate(parts), {label: code for code, label in enumerate(opened.labels)}
        truth = np.array([codes[label] for label in examples.labels], dtype=np.int64)
        answers = logits.argmax(axis=1)
        confusion = Confusion.of(opened.labels, truth, answers)
        probabilities = softmax(logits, opened.temperature)
        scores = ClassScores(
            confusion, log_loss(logits, truth, opened.temperature), calibration_error(probabilities, truth),
            signature(confusion, opened.engine.name, precision),
            None if examples.texts is None else seen_in_training(bundle.card, "text", examples.texts),
        )  # fmt: skip
        return scores, answers.tolist()

    def look(self, opened: Classifier, item: Any, target: str | None = None, **options: Any) -> Seen:
        if target is not None and target not in opened.labels:
            raise UsageError(f"the model has no label '{target}'; it has {', '.join(opened.labels[:20])}")
        (given,) = opened.inputs.items([item], opened.assets) if isinstance(item, str) else [item]
        found = opened.classify([given])[0]
        label = target or found.label
        from headwise.bundle.weights import load_model

        network = getattr(opened.engine, "network", None) or load_model(opened.bundle)
        answer, chance = opened.labels.index(label), found.probabilities[label]
        return opened.inputs.look(network, opened.assets, given, answer, opened.longest, chance)

    def serve(self, name: str, bundle: Bundle, engine: str, precision: str) -> ServedClassifier:
        return ServedClassifier(
            name, self.open(bundle, engine, precision=precision), lambda: self.open(bundle, "torch")
        )


class LabelScorer:
    """Accuracy and macro-F1 of a validation, read off its batches."""

    def __init__(self, labels: tuple[str, ...]) -> None:
        self.labels = labels
        self.matrix = np.zeros((len(labels), len(labels)), dtype=np.int64)

    def add(self, batch: Batch, sums: BatchLoss) -> None:
        if sums.answers is not None:
            np.add.at(self.matrix, (batch.targets.cpu().numpy(), sums.answers.cpu().numpy()), 1)

    def __call__(self) -> tuple[dict[str, float], list[tuple[str, str, str]]]:
        confusion = Confusion(self.labels, self.matrix)
        self.matrix = np.zeros_like(self.matrix)
        return {"accuracy": confusion.accuracy, "macro_f1": confusion.macro_f1}, []


TASK = Classify()


def numbered_labels(bundle: Bundle, labels: tuple[str, ...]) -> tuple[str, ...]:
    """The labels in the order of the numbers of idx files: data.labels of the recipe, or as the model has them."""
    recipe: Any = bundle.card.get("recipe")
    named = recipe.get("data", {}).get("labels", ()) if isinstance(recipe, dict) else ()
    in_order = tuple(map(str, named)) if isinstance(named, list | tuple) else ()
    return in_order if sorted(in_order) == sorted(labels) else labels
