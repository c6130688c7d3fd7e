"""Text for training, as tasks on lines of text share it: from the files of a recipe to tokenizers and token stores."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from headwise.bundle.assets import Assets
from headwise.bundle.directory import write_directory
from headwise.config import schema
from headwise.config.schema import Recipe
from headwise.data.chunks import Chunks, Files, TextStream, sample
from headwise.data.prefetch import Prefetch
from headwise.data.store import Store
from headwise.data.writer import Encoder, cached_store, write_files
from headwise.errors import DataError, HeadwiseError, ModelError, RecipeError
from headwise.tasks.automatic import DataFacts
from headwise.tasks.interface import Examined, OnProgress, Prepared, Progress, Task, check_fields
from headwise.text.corpus import expand_paths, fingerprint, read_line_batches, read_pair_batches
from headwise.text.report import check_corpus
from headwise.text.tokenizer import Tokenizer, TokenizerPair

# Enough to learn a vocabulary from; more text would hardly change it but take more memory.
TOKENIZER_CHARACTERS = 50_000_000
# Held-out text is not filtered: only pairs that cannot be scored at all are left out.
UNFILTERED = schema.Filters.model_validate({"max_characters": 10**9, "max_ratio": 1e9, "control": False})


class TextTask(Task):
    """What tasks on lines of text share: examining, filtering, tokenizing, and the split into parts."""

    def special_tokens(self, recipe: Recipe) -> tuple[str, ...]:
        """Names of tokens that a tokenizer must have for this task, besides those that all have."""
        return ()

    def examine(self, recipe: Recipe, base: Path, on_progress: OnProgress | None = None) -> Examined:
        report = check_corpus(_with_files(recipe.data, base), on_progress)
        return Examined(report, DataFacts(report.counts.kept, report.sides[0].characters, report.unit))

    def prepare(
        self, recipe: Recipe, base: Path, cache: Path, *, start: Assets | None = None, progress: Progress | None = None
    ) -> Prepared:
        """Makes tokenizers and token stores.

        The tokenizers are those of the model that is fine-tuned, or the recipe's files, or are trained on its text.
        """
        tell = progress or (lambda stage, done, total: None)
        training, held_out = training_files(recipe, base), validation_files(recipe, base)
        check_fields(self, recipe)
        prints = {"training": fingerprint(training.all)}
        chunks = Chunks(training, recipe.data.filters, recipe.data.languages)
        tokenizers = start.tokenizers if start is not None else None
        if tokenizers is None:
            tokenizers = make_tokenizers(
                recipe, base, cache, chunks, prints["training"], tell, self.special_tokens(recipe)
            )
        store = _store(cache, chunks, tokenizers, prints["training"], "training text", tell)
        if not len(store):
            counts = store.manifest.counts
            raise DataError(
                f"no line is left to train on after filtering: {counts}; change data.filters", file=training.all[0]
            )
        validation = None
        if held_out is not None:
            prints["validation"] = fingerprint(held_out.all)
            held_chunks = Chunks(held_out, UNFILTERED, recipe.data.languages)
            validation = _store(cache, held_chunks, tokenizers, prints["validation"], "validation text", tell)
            if not len(validation):
                raise DataError("no line is left to validate on: all lines are empty", file=held_out.all[0])
        return Prepared(Assets(tokenizers), store, validation, prints)

    def open_store(self, directory: Path) -> Store:
        return Store(directory)

    def training_lines(self, recipe: Recipe, base: Path) -> tuple[str, Iterator[str]]:
        """Every source line (or line of text)."""
        files = training_files(recipe, base)
        return files.sides[0], _first_side(files)


def _first_side(files: Files) -> Iterator[str]:
    if files.text:
        field = files.fields[0] if files.fields else None
        lines = read_line_batches(files.text, format=files.format, field=field)
        yield from (text for batch in lines for text in batch.texts)
    else:
        pairs = read_pair_batches(files.source, files.target, format=files.format, fields=files.fields)
        yield from (text for batch in pairs for text in batch.sources)


def training_files(recipe: Recipe, base: Path) -> Files:
    files = _files(recipe.data, recipe.data, base)
    split = recipe.data.split and not recipe.data.validation.given
    return replace(files, part="training", share=recipe.data.split) if split else files


def validation_files(recipe: Recipe, base: Path) -> Files | None:
    """None where the recipe names no validation text and splits none off."""
    held_out = recipe.data.validation
    if held_out.given:
        return _files(held_out, recipe.data, base)
    if not recipe.data.split:
        return None
    return replace(_files(recipe.data, recipe.data, base), part="validation", share=recipe.data.split)


def _with_files(data: schema.Data, base: Path) -> schema.Data:
    """The data section with every path and glob replaced by the files that it matches."""

    def found(texts: schema.Texts) -> dict[str, tuple[str, ...]]:
        return {name: tuple(expand_paths(getattr(texts, name), base)) for name in texts.given}

    held_out = {part: getattr(data, part) for part in ("validation", "test")}
    expanded = {part: texts.model_copy(update=found(texts)) for part, texts in held_out.items()}
    return data.model_copy(update={**found(data), **expanded})


def _files(texts: schema.Texts, data: schema.Data, base: Path) -> Files:
    return Files(
        source=expand_paths(texts.source, base),
        target=expand_paths(texts.target, base),
        text=expand_paths(texts.text, base),
        format=data.format,
        fields=data.fields,
    )


def make_tokenizers(
    recipe: Recipe, base: Path, cache: Path, texts: TextStream, content: str, tell: Progress,
    extra: tuple[str, ...] = (),
) -> TokenizerPair:  # fmt: skip
    """The recipe's tokenizer files, or tokenizers that are trained on its texts; `content` is their fingerprint.

    `extra` are special tokens that the task needs.
    """
    settings = recipe.tokenizer
    if settings.files:
        return _given(expand_paths(settings.files, base), len(texts.text_sides))
    key = _key(
        "tokenizer", content, settings.model_dump(mode="json", exclude={"dropout", "target_dropout"}), texts.reading,
        *([extra] if extra else []),
    )  # fmt: skip
    folder = cache / f"tokenizer-{key}"
    try:
        return TokenizerPair.load(folder)
    except ModelError:
        pass  # missing or damaged: train it
    tell("tokenizer", 0, None)
    sampled = sample(texts, TOKENIZER_CHARACTERS)
    if not any(sampled.values()):
        raise DataError(
            f"no line is left to train on after filtering: {texts.counts}; change data.filters", file=texts.names[0]
        )
    pair = _trained(sampled, settings, extra)
    write_directory(folder, lambda directory: _save(pair, directory))
    tell("tokenizer", texts.counts.lines, texts.counts.lines)
    return pair


def _save(pair: TokenizerPair, directory: Path) -> None:
    pair.save(directory)


def _given(files: list[str], sides: int) -> TokenizerPair:
    if len(files) > sides:
        raise RecipeError(
            f"tokenizer.files has {len(files)} files, but the data has {sides} sides; give one file per side"
        )
    if len(files) == 1:
        return TokenizerPair.one(Tokenizer.load(files[0]))
    return TokenizerPair(Tokenizer.load(files[0]), Tokenizer.load(files[1]))


def _trained(texts: dict[str, list[str]], settings: schema.Tokenizer, extra: tuple[str, ...]) -> TokenizerPair:
    if settings.shared or len(texts) == 1:
        return TokenizerPair.one(Tokenizer.train([text for side in texts.values() for text in side], settings, extra))
    trained = []
    for side, lines in texts.items():
        try:
            trained.append(Tokenizer.train(lines, settings, extra))
        except HeadwiseError as error:
            raise type(error)(f"{side} side: {error}") from error
    return TokenizerPair(*trained)


def _store(cache: Path, chunks: Chunks, pair: TokenizerPair, content: str, stage: str, tell: Progress) -> Store:
    sides = dict(zip(chunks.sides, (pair.source, pair.target), strict=False))
    return make_store(cache, chunks, sides, {"content": content, "tokenizers": pair.fingerprint}, stage, tell)


def make_store(
    cache: Path, texts: TextStream, encoders: Mapping[str, Encoder], about: Mapping[str, str], stage: str,
    tell: Progress, prefix: str = "",
) -> Store:  # fmt: skip
    """The store of these texts; `about` names whatever else its ids depend on."""
    key = _key("store", *about.values(), texts.names, texts.reading)

    def write(directory: Path) -> None:
        with Prefetch(texts, ahead=2) as stream:
            write_files(directory, texts, encoders, about, lambda lines: tell(stage, lines, None), stream)

    store = cached_store(cache, f"{prefix}{stage.split()[0]}-{key}", write)
    tell(stage, store.manifest.counts.lines, store.manifest.counts.lines)
    return store


def _key(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
