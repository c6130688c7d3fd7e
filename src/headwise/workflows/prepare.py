"""Prepares text for training: from the files of a recipe to tokenizers and token stores."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from headwise.bundle.directory import write_directory
from headwise.config import schema
from headwise.data.chunks import Chunks, Files, sample
from headwise.data.prefetch import Prefetch
from headwise.data.store import Store
from headwise.data.writer import cached_store, write_files
from headwise.errors import DataError, HeadwiseError, ModelError, RecipeError
from headwise.tasks import find_task
from headwise.tasks.interface import check_columns
from headwise.text.corpus import expand_paths, fingerprint
from headwise.text.tokenizer import Tokenizer, TokenizerPair
from headwise.training.distributed import World

# Called with a stage ("tokenizer", "training text", "validation text"), lines done, and total lines if known.
Progress = Callable[[str, int, int | None], None]

# Enough to learn a vocabulary from; more text would hardly change it but take more memory.
TOKENIZER_CHARACTERS = 50_000_000
# Held-out text is not filtered: only pairs that cannot be scored at all are left out.
UNFILTERED = schema.Filters.model_validate({"max_characters": 10**9, "max_ratio": 1e9, "control": False})


@dataclass(frozen=True)
class Prepared:
    tokenizers: TokenizerPair
    training: Store
    validation: Store | None
    fingerprints: dict[str, str]  # of the content of the training and validation files


def prepare(
    recipe: schema.Recipe,
    base: Path,
    cache: Path,
    *,
    tokenizers: TokenizerPair | None = None,
    progress: Progress | None = None,
) -> Prepared:
    """Makes tokenizers and stores for a recipe whose paths are relative to `base`; reuses what is in `cache`.

    `tokenizers` are those of a model that is fine-tuned; by default they are the recipe's files, or are trained on its
    text.
    """
    tell = progress or (lambda stage, done, total: None)
    training = training_files(recipe, base)
    held_out = validation_files(recipe, base)
    check_columns(find_task(recipe.task_name), recipe)
    prints = {"training": fingerprint(training.all)}
    chunks = Chunks(training, recipe.data.filters, recipe.data.languages)
    if tokenizers is None:
        tokenizers = _tokenizers(recipe, base, cache, chunks, prints["training"], tell)
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
    return Prepared(tokenizers, store, validation, prints)


def prepare_once(world: World, make: Callable[[], Prepared], cache: Path) -> Prepared:
    """Prepares on rank 0 only; the other ranks open the result without reading the text again."""
    if world.size == 1:
        return make()
    prepared: list[Prepared] = []

    def first() -> dict[str, Any]:
        made = make()
        prepared.append(made)
        write_directory(cache / "tokenizers", lambda directory: _save(made.tokenizers, directory))
        validation = None if made.validation is None else str(made.validation.directory)
        return {
            "training": str(made.training.directory), "validation": validation, "fingerprints": made.fingerprints
        }  # fmt: skip

    told = world.on_rank_0(first)
    if prepared:
        return prepared[0]
    validation = None if told["validation"] is None else Store(Path(told["validation"]))
    tokenizers = TokenizerPair.load(cache / "tokenizers")
    return Prepared(tokenizers, Store(Path(told["training"])), validation, told["fingerprints"])


def training_files(recipe: schema.Recipe, base: Path) -> Files:
    files = _files(recipe.data, recipe.data, base)
    split = recipe.data.split and not (recipe.data.validation.source or recipe.data.validation.text)
    return replace(files, part="training", share=recipe.data.split) if split else files


def validation_files(recipe: schema.Recipe, base: Path) -> Files | None:
    """None where the recipe names no validation text and splits none off."""
    held_out = recipe.data.validation
    if held_out.source or held_out.text:
        return _files(held_out, recipe.data, base)
    if not recipe.data.split:
        return None
    return replace(_files(recipe.data, recipe.data, base), part="validation", share=recipe.data.split)


def _files(texts: schema.Texts, data: schema.Data, base: Path) -> Files:
    return Files(
        source=expand_paths(texts.source, base),
        target=expand_paths(texts.target, base),
        text=expand_paths(texts.text, base),
        format=data.format,
        fields=data.fields,
    )


def _tokenizers(
    recipe: schema.Recipe, base: Path, cache: Path, chunks: Chunks, content: str, tell: Progress
) -> TokenizerPair:
    settings = recipe.tokenizer
    if settings.files:
        return _given(expand_paths(settings.files, base), len(chunks.sides))
    key = _key(
        "tokenizer", content, settings.model_dump(mode="json", exclude={"dropout", "target_dropout"}), _reading(chunks)
    )
    folder = cache / f"tokenizer-{key}"
    try:
        return TokenizerPair.load(folder)
    except ModelError:
        pass  # missing or damaged: train it
    tell("tokenizer", 0, None)
    texts = sample(chunks, TOKENIZER_CHARACTERS)
    if not any(texts.values()):
        raise DataError(
            f"no line is left to train on after filtering: {chunks.counts}; change data.filters",
            file=chunks.corpus.all[0],
        )
    pair = _trained(texts, settings)
    write_directory(folder, lambda directory: _save(pair, directory))
    tell("tokenizer", chunks.counts.lines, chunks.counts.lines)
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


def _trained(texts: dict[str, list[str]], settings: schema.Tokenizer) -> TokenizerPair:
    if settings.shared or len(texts) == 1:
        return TokenizerPair.one(Tokenizer.train([text for side in texts.values() for text in side], settings))
    trained = []
    for side, lines in texts.items():
        try:
            trained.append(Tokenizer.train(lines, settings))
        except HeadwiseError as error:
            raise type(error)(f"{side} side: {error}") from error
    return TokenizerPair(*trained)


def _store(cache: Path, chunks: Chunks, pair: TokenizerPair, content: str, stage: str, tell: Progress) -> Store:
    sides = dict(zip(chunks.sides, (pair.source, pair.target), strict=False))
    key = _key("store", content, pair.fingerprint, chunks.corpus.all, _reading(chunks))

    def write(directory: Path) -> None:
        with Prefetch(chunks, ahead=2) as stream:
            about = {"content": content, "tokenizers": pair.fingerprint}
            write_files(directory, chunks, sides, about, lambda lines: tell(stage, lines, None), stream)

    store = cached_store(cache, f"{stage.split()[0]}-{key}", write)
    tell(stage, store.manifest.counts.lines, store.manifest.counts.lines)
    return store


def _reading(chunks: Chunks) -> list[object]:
    """Returns everything besides the files' content that determines the texts."""
    files = chunks.corpus
    return [
        files.format,
        list(files.fields),
        chunks.filters.model_dump(mode="json"),
        *([files.part, files.share] if files.part else []),
        list(chunks.languages),
        chunks.sides,
    ]


def _key(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
