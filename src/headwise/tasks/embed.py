"""The task `embed`: a vector for each text; texts that mean the same have similar ones.

Learns from pairs of texts that belong together: each must find its partner among those of its group (in-batch
negatives; Henderson et al. 2017, arXiv 1705.00652).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headwise.bundle.assets import LONGEST, Assets
from headwise.bundle.directory import Bundle
from headwise.config.schema import Recipe, require_family
from headwise.data.rows import Table, TableRows
from headwise.data.store import Store
from headwise.errors import DataError, RecipeError, UsageError, WorkFailed
from headwise.evaluation.contamination import Overlap, seen_in_training
from headwise.evaluation.retrieval import partner_ranks, spearman
from headwise.tasks.answer_scores import AnswerScorer
from headwise.tasks.automatic import Choice, DataFacts, before_tokenizing, choose, optimisation
from headwise.tasks.embedder import Embedder
from headwise.tasks.fast_encoders import vector_encoder
from headwise.tasks.inputs.text import INPUTS
from headwise.tasks.interface import Examined, OnProgress, Prepared, Progress, Task, trained_columns
from headwise.tasks.served_encoders import ServedEmbedder
from headwise.tasks.text_data import UNFILTERED, make_store, make_tokenizers
from headwise.text.corpus import expand_paths, fingerprint
from headwise.text.table_report import check_pairs
from headwise.text.tables import read_table_batches

if TYPE_CHECKING:
    from headwise.data.batch import Batch
    from headwise.data.contrast import ContrastBatches
    from headwise.look.capture import Look
    from headwise.losses import BatchLoss, Loss
    from headwise.models.interface import Network

ENGINES = ("auto", "torch", "ctranslate2")
COLUMNS = ("text", "partner")


@dataclass(frozen=True)
class VectorScores:
    """Of pairs: how often a text's partner is its nearest. With grades: how far cosines agree with them."""

    pairs: int
    first: float  # share of texts whose partner is the nearest of all
    reciprocal_rank: float
    correlation: float | None
    signature: str
    overlap: Overlap | None = None

    def lines(self) -> list[str]:
        found = [
            f"partner is nearest    {self.first:.4f}  {self.signature}",
            f"mean reciprocal rank  {self.reciprocal_rank:.4f}",
        ]
        return found + ([] if self.correlation is None else [f"Spearman correlation  {self.correlation:.4f}"])

    def as_dict(self) -> dict[str, Any]:
        return {
            "pairs": self.pairs, "first": self.first, "reciprocal_rank": self.reciprocal_rank,
            "correlation": self.correlation, "signature": self.signature,
            "overlap": None if self.overlap is None else self.overlap.as_dict(),
        }  # fmt: skip


class Embed(Task):
    """Sentence vectors: learns from pairs, is scored by whether partners find each other."""

    name = "embed"
    reads = (("table",),)
    scores = ("accuracy",)

    # ---- training

    def check(self, recipe: Recipe) -> None:
        if len(columns := recipe.data.columns or COLUMNS) != 2:
            raise RecipeError(f"data.columns must name the two columns of a pair, not {', '.join(columns)}")

    def automatic(self, recipe: Recipe, facts: DataFacts) -> list[Choice]:
        choices = before_tokenizing(recipe, facts)
        chosen, _ = choose(recipe, choices)
        width = getattr(chosen.model.settings, "model_dim", 256)
        return [*choices, *optimisation(recipe, width, 4096, f"{facts.lines:,} {facts.unit}")]

    def examine(self, recipe: Recipe, base: Path, on_progress: OnProgress | None = None) -> Examined:
        self.check(recipe)
        whole = _table(recipe, base)
        report = check_pairs(
            whole.files, whole.columns, filters=recipe.data.filters, format=whole.format, on_progress=on_progress
        )
        return Examined(report, DataFacts(report.counts.kept, sum(side.characters for side in report.sides), "pairs"))

    def tokenizer_text(self, recipe: Recipe, base: Path) -> tuple[TableRows, str]:
        training, _ = _tables(recipe, base)
        return TableRows(training, recipe.data.filters), fingerprint(training.files)

    def prepare(
        self, recipe: Recipe, base: Path, cache: Path, *, start: Assets | None = None, progress: Progress | None = None
    ) -> Prepared:
        tell = progress or (lambda stage, done, total: None)
        self.check(recipe)
        training, held_out = _tables(recipe, base)
        rows, content = self.tokenizer_text(recipe, base)
        prints = {"training": content}
        tokenizers = None if start is None else start.text
        if tokenizers is None:
            tokenizers = make_tokenizers(recipe, base, cache, rows, content, tell)
        encoders = dict.fromkeys(training.sides, tokenizers.source)
        about = {"content": content, "tokenizers": tokenizers.fingerprint}
        store = make_store(cache, rows, encoders, about, "training text", tell)
        validation = None
        if held_out is not None:
            prints["validation"] = fingerprint(held_out.files)
            about |= {"content": prints["validation"]}
            validation = make_store(cache, TableRows(held_out, UNFILTERED), encoders, about, "validation text", tell)
        longest = None if start is None else start.longest(None)
        told = {} if longest is None else {LONGEST: longest}
        return Prepared(Assets(tokenizers, preprocessing=told), store, validation, prints)

    def open_store(self, directory: Path) -> Store:
        return Store(directory)

    def training_lines(self, recipe: Recipe, base: Path) -> tuple[str, Iterator[str]]:
        rows = TableRows(_tables(recipe, base)[0], recipe.data.filters)
        return "text", (text for chunk in rows for text in chunk.texts["text"])

    def sizes(self, assets: Assets, recipe: Recipe) -> dict[str, Any]:
        known = require_family(recipe.model.family).sizes
        sizes = {"vocab": assets.tokenizers.source.size, "classes": 0}
        return {name: value for name, value in sizes.items() if name in known}

    def batches(
        self,
        store: Store,
        recipe: Recipe,
        assets: Assets,
        max_length: int | None,
        *,
        rank: int = 0,
        world: int = 1,
        shuffle: bool = True,
    ) -> ContrastBatches:
        from headwise.data.contrast import ContrastBatches

        settings = recipe.training
        return ContrastBatches(
            store, settings.batch_tokens, recipe.contrast.pairs, settings.seed, longest=assets.longest(max_length),
            shuffle=shuffle, rank=rank, world=world,
        )  # fmt: skip

    def loss(self, network: Network, batch: Batch, smoothing: float) -> BatchLoss:
        from headwise.losses import contrast_loss

        return contrast_loss(network, batch, smoothing)

    def objective(self, recipe: Recipe, prepared: Prepared) -> Loss:
        from headwise.losses import contrast_loss

        return partial(contrast_loss, temperature=recipe.contrast.temperature)

    def scorer(self, network: Network, assets: Assets, recipe: Recipe) -> AnswerScorer:
        return AnswerScorer()

    # ---- using a model

    def open(
        self, bundle: Bundle, engine: str = "auto", *, precision: str = "int8", device: str = "cpu", **options: Any
    ) -> Embedder:
        """Opens an embedder. A model of another task is one too: the mean of its states, without its output."""
        if engine not in ENGINES:
            raise UsageError(f"unknown engine '{engine}'; choose one of {', '.join(ENGINES)}")
        assets = Assets.load(bundle.path)
        if engine != "torch":
            try:
                return Embedder(bundle, assets, vector_encoder(bundle, assets.tokenizers, precision))
            except (WorkFailed, UsageError):
                if engine == "ctranslate2":
                    raise
        from headwise.decoding.encoder_engine import TorchEncoder

        return Embedder(bundle, assets, TorchEncoder(_network(bundle, device), INPUTS.tensors))

    def unit(self, assets: Assets) -> str:
        return "pairs"

    def evaluate(self, bundle: Bundle, on_progress: OnProgress | None = None, **asked: Any) -> VectorScores:
        """Of a table with two columns of texts, and perhaps a third with grades of their likeness."""
        engine, columns = asked.pop("engine", "torch"), asked.pop("columns", ()) or trained_columns(bundle) or COLUMNS
        file, precision = asked.pop("table", ""), asked.pop("precision", "float32")
        if not file or asked:
            raise UsageError(f"{bundle.path} embeds texts: evaluate it with --table FILE, and --columns")
        rows, lines = [], []
        for batch in read_table_batches(expand_paths(file), columns):
            rows += batch.rows
            lines += batch.lines
        if len(rows) < 2:
            raise DataError("there are no pairs to evaluate", file=file)
        grades = _grades(rows, lines, file) if len(columns) == 3 else None
        opened = self.open(bundle, "torch" if engine == "auto" else engine, precision=precision)
        vectors = [opened.embed([row[side] for row in rows]) for side in (0, 1)]
        if on_progress is not None:
            on_progress(len(rows))
        ranks = partner_ranks(*vectors)
        correlation = None if grades is None else spearman((vectors[0] * vectors[1]).sum(axis=1), grades)
        signature = f"pairs:{len(rows)}|similarity:cosine|engine:{opened.engine.name}"
        return VectorScores(
            len(rows), float((ranks == 1).mean()), float((1 / ranks).mean()), correlation, signature,
            seen_in_training(bundle.card, "text", [row[0] for row in rows]),
        )  # fmt: skip

    def look(self, opened: Embedder, item: str, target: str | None = None, **options: Any) -> Look:
        from headwise.look.encoder import look_at_input

        if target is not None:
            raise UsageError("sentence vectors have no target to look at; leave --target out")
        network = getattr(opened.engine, "network", None) or _network(opened.bundle, "cpu")
        (ids,) = INPUTS.encode([item], Assets(opened.assets.text), opened.longest)
        return look_at_input(network, opened.assets.tokenizers.source, ids)

    def serve(self, name: str, bundle: Bundle, engine: str, precision: str) -> ServedEmbedder:
        return ServedEmbedder(name, self.open(bundle, engine, precision=precision), lambda: self.open(bundle, "torch"))


TASK = Embed()


def _network(bundle: Bundle, device: str) -> Network:
    from headwise.bundle.weights import load_model, start_from

    if bundle.architecture.get("classes", 0) == 0:
        return load_model(bundle, device)
    known = bundle.declared.settings.model_fields
    network, _ = start_from(bundle, {"classes": 0, **({"pooling": "mean"} if "pooling" in known else {})})
    return network.to(device).eval()


def _grades(rows: list[tuple[str, ...]], lines: list[int], file: str) -> np.ndarray:
    found = []
    for row, line in zip(rows, lines, strict=True):
        try:
            found.append(float(row[2]))
        except ValueError:
            raise DataError(f"the grade '{row[2][:40]}' is not a number", file=file, line=line) from None
    return np.array(found)


def _tables(recipe: Recipe, base: Path) -> tuple[Table, Table | None]:
    whole, held_out = _table(recipe, base), recipe.data.validation.table
    if held_out:
        return whole, replace(whole, files=tuple(expand_paths(held_out, base)))
    return whole.split(recipe.data.split) if recipe.data.split else (whole, None)


def _table(recipe: Recipe, base: Path) -> Table:
    columns = recipe.data.columns or COLUMNS
    return Table(tuple(expand_paths(recipe.data.table, base)), columns, ("text", "second"), recipe.data.format)
