"""Texts to classify, one or two per row of a table: CSV, TSV or JSONL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headwise.bundle.assets import ENDS, TEXTS, Assets
from headwise.bundle.directory import Bundle
from headwise.config.schema import Recipe
from headwise.data.joined_texts import encoded
from headwise.data.rows import LABEL, LabelCodes, Table, TableRows, ordered
from headwise.data.store import Store
from headwise.errors import DataError, RecipeError, UsageError
from headwise.tasks.automatic import Choice, DataFacts, before_tokenizing, choose, optimisation
from headwise.tasks.fast_encoders import label_encoder
from headwise.tasks.inputs.interface import Examples, Inputs
from headwise.tasks.interface import Examined, OnProgress, Prepared, Progress
from headwise.tasks.text_data import UNFILTERED, make_store, make_tokenizers
from headwise.text.corpus import expand_paths, fingerprint
from headwise.text.ragged import Ragged
from headwise.text.table_report import check_table
from headwise.text.tables import read_table_batches

if TYPE_CHECKING:
    from torch import Tensor

    from headwise.data.sequences import LabelledBatches
    from headwise.look.capture import Look
    from headwise.models.interface import Network

COLUMNS = ("text", LABEL)


class TextInputs(Inputs):
    """Rows of a table: their texts and their label."""

    field = "table"
    unit = "rows"

    # ---- training

    def check(self, recipe: Recipe) -> None:
        columns = columns_of(recipe)
        if not 2 <= len(columns) <= 3 or len(set(columns)) < len(columns):
            raise RecipeError(
                f"data.columns must name one or two columns of text, then that of the label, not {', '.join(columns)}"
            )

    def automatic(self, recipe: Recipe, facts: DataFacts) -> list[Choice]:
        choices = before_tokenizing(recipe, facts)
        chosen, _ = choose(recipe, choices)
        width = getattr(chosen.model.settings, "model_dim", 256)
        return [*choices, *optimisation(recipe, width, 1024, f"{facts.lines:,} {facts.unit}")]

    def examine(self, recipe: Recipe, base: Path, on_progress: OnProgress | None = None) -> Examined:
        self.check(recipe)
        whole = _table(recipe, base, recipe.data.table)
        held_out = {
            name: tuple(expand_paths(texts.table, base))
            for name, texts in (("validation", recipe.data.validation), ("test", recipe.data.test))
            if texts.table
        }
        report = check_table(
            whole.files,
            whole.columns,
            held_out,
            filters=recipe.data.filters,
            format=whole.format,
            on_progress=on_progress,
        )
        return Examined(report, DataFacts(report.counts.kept, sum(side.characters for side in report.sides), "rows"))

    def tokenizer_text(self, recipe: Recipe, base: Path) -> tuple[TableRows, str]:
        training, _ = tables(recipe, base)
        return TableRows(training, recipe.data.filters), fingerprint(training.files)

    def prepare(
        self, recipe: Recipe, base: Path, cache: Path, *, start: Assets | None = None, progress: Progress | None = None
    ) -> Prepared:
        tell = progress or (lambda stage, done, total: None)
        self.check(recipe)
        training, held_out = tables(recipe, base)
        rows, content = self.tokenizer_text(recipe, base)
        prints = {"training": content}
        tokenizers = None if start is None else start.text
        if tokenizers is None:
            tokenizers = make_tokenizers(recipe, base, cache, rows, content, tell)
        labels = _labels(rows, start)
        codes = LabelCodes(labels)
        encoders = {side: codes if side == LABEL else tokenizers.source for side in training.sides}
        about = {"content": content, "tokenizers": tokenizers.fingerprint, "labels": "\n".join(labels)}
        store = make_store(cache, rows, encoders, about, "training text", tell, f"{self.field}-")
        validation = None
        if held_out is not None:
            prints["validation"] = fingerprint(held_out.files)
            kept = TableRows(held_out, UNFILTERED, labels)
            about |= {"content": prints["validation"]}
            validation = make_store(cache, kept, encoders, about, "validation text", tell, f"{self.field}-")
            if not len(validation):
                raise DataError("no row is left to validate on: all rows are empty", file=held_out.files[0])
        told = {TEXTS: 2} if len(training.sides) == 3 else {}
        told |= {ENDS: start.ends} if start is not None and start.ends > 1 else {}
        return Prepared(Assets(tokenizers, labels, told), store, validation, prints)

    def open_store(self, directory: Path) -> Store:
        return Store(directory)

    def training_lines(self, recipe: Recipe, base: Path) -> tuple[str, Iterator[str]]:
        training, _ = tables(recipe, base)
        return "text", (text for chunk in TableRows(training, recipe.data.filters) for text in chunk.texts["text"])

    def sizes(self, assets: Assets) -> dict[str, Any]:
        return {"vocab": assets.tokenizers.source.size}

    def batches(
        self, store: Store, recipe: Recipe, assets: Assets, max_length: int | None, *,
        rank: int = 0, world: int = 1, shuffle: bool = True,
    ) -> LabelledBatches:  # fmt: skip
        from headwise.data.sequences import LabelledBatches

        settings = recipe.training
        return LabelledBatches(
            store, settings.batch_tokens, settings.seed, longest=max_length, ends=assets.ends, shuffle=shuffle,
            rank=rank, world=world,
        )  # fmt: skip

    def label_counts(self, store: Store, classes: int) -> NDArray[np.int64]:
        return np.bincount(store.rows(LABEL, np.arange(len(store))).tokens, minlength=classes)

    # ---- using a model

    def opens(self, assets: Assets) -> bool:
        return assets.text is not None

    def reads(self, assets: Assets) -> str:
        return "text" if assets.texts == 1 else "pair"

    def example(self, assets: Assets) -> Any:
        return "a" if assets.texts == 1 else ("a", "a")

    def items(self, given: Sequence[str], assets: Assets) -> list[Any]:
        """A model that reads pairs gets the two texts in one line, with a tab between them."""
        if assets.texts == 1:
            return list(given)
        pairs = [tuple(line.split("\t")) for line in given]
        for number, pair in enumerate(pairs, start=1):
            if len(pair) != 2:
                has = "has no tab" if len(pair) == 1 else f"has {len(pair) - 1} tabs"
                raise DataError(f"this model reads pairs of texts with a tab between them, but text {number} {has}")
        return pairs

    def examples(self, files: Sequence[str], assets: Assets, columns: Sequence[str] = ()) -> Examples:
        known, texts = set(assets.labels), assets.texts
        found = Examples([], [], [], [])
        wanted = tuple(columns) or COLUMNS
        if len(wanted) != texts + 1:
            read = "a text" if texts == 1 else "two texts"
            raise DataError(f"this model reads {read} and a label: name {texts + 1} columns with --columns")
        for batch in read_table_batches(expand_paths(files), wanted):
            for line, (*cells, label) in zip(batch.lines, batch.rows, strict=True):
                if label not in known:
                    raise DataError(f"the model has no label '{label}'", file=batch.file, line=line)
                found.items.append(cells[0] if texts == 1 else tuple(cells))
                found.labels.append(label)
                found.places.append(f"{batch.file}:{line}")
                if found.texts is not None:
                    found.texts.append(cells[0])
        if not found.items:
            raise DataError("there is no row to evaluate", file=files[0])
        return found

    def encode(self, items: Sequence[Any], assets: Assets, longest: int | None) -> list[Any]:
        """Token ids with begin and end of sentence; of a text that is too long the beginning."""
        tokenizer, pairs = assets.tokenizers.source, assets.texts == 2
        if pairs and any(isinstance(item, str) or len(item) != 2 for item in items):
            raise UsageError("this model reads pairs of texts: give two texts for each, (first, second)")
        columns = list(zip(*items, strict=True)) if pairs else [items]
        return encoded([tokenizer.encode_ragged(list(column)) for column in columns], longest, assets.ends)

    def cost(self, one: Any) -> int:
        return len(one)

    def tensors(self, several: Sequence[Any]) -> tuple[Tensor, ...]:
        import torch

        from headwise.data.batch import pad

        return pad(Ragged.of(several)), torch.tensor([len(ids) for ids in several])

    def look(
        self, network: Network, assets: Assets, item: Any, answer: int, longest: int | None, chance: float
    ) -> Look:
        from headwise.look.encoder import look_at_label

        (ids,) = self.encode([item], assets, longest)
        return look_at_label(network, assets.tokenizers.source, ids, assets.labels[answer], answer, chance)

    def fast_engine(self, bundle: Bundle, assets: Assets, precision: str) -> Any:
        return label_encoder(bundle, assets.tokenizers, precision)


INPUTS = TextInputs()


def columns_of(recipe: Recipe) -> tuple[str, ...]:
    return recipe.data.columns or COLUMNS


def tables(recipe: Recipe, base: Path) -> tuple[Table, Table | None]:
    """The training table and the validation table, which may be a part of the same file."""
    whole, held_out = _table(recipe, base, recipe.data.table), recipe.data.validation.table
    if held_out:
        return whole, replace(whole, files=tuple(expand_paths(held_out, base)))
    return whole.split(recipe.data.split) if recipe.data.split else (whole, None)


def _table(recipe: Recipe, base: Path, paths: tuple[str, ...]) -> Table:
    columns = columns_of(recipe)
    sides = ("text", LABEL) if len(columns) == 2 else ("text", "second", LABEL)
    return Table(tuple(expand_paths(paths, base)), columns, sides, recipe.data.format)


def _labels(rows: TableRows, start: Assets | None) -> tuple[str, ...]:
    """The labels of the training rows; those of the start model, in its order, where it knows them all."""
    found = ordered([label for chunk in rows for label in chunk.texts[LABEL]])
    if start is not None and start.labels and set(found) <= set(start.labels):
        return start.labels
    if len(found) < 2:
        what = f"only the label '{found[0]}'" if found else "no label"
        raise DataError(f"has {what}: a classifier needs two labels or more; check data.columns", file=rows.names[0])
    return found
