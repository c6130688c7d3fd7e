"""Text for training, as tasks on lines of text share it: from the files of a recipe to tokenizers and token stores."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from headwise.bundle.assets import Assets
from headwise.bundle.directory import write_directory
from headwise.config import schema
from headwise.config.schema import Recipe
from headwise.data.chunks import Chunks, Files, TextStream, sample
from headwise.data.mixture import PART, MixedChunks
from headwise.data.prefetch import Prefetch
from headwise.data.rows import LabelCodes
from headwise.data.store import Store
from headwise.data.writer import Encoder, cached_store, write_files
from headwise.errors import DataError, HeadwiseError, ModelError, RecipeError
from headwise.tasks.automatic import DataFacts
from headwise.tasks.interface import Examined, OnProgress, Prepared, Progress, Task, check_fields
from headwise.text.corpus import expand_paths, fingerprint, read_line_batches, read_pair_batches
from headwise.text.joined_report import joined_report
from headwise.text.report import check_corpus
from headwise.text.tokenizer import Tokenizer, TokenizerPair

# Enough to learn a vocabulary from; more text would hardly change it but take more memory.
TOKENIZER_CHARACTERS = 50_000_000
# Held-out text is not filtered: only pairs that cannot be scored at all are left out.
UNFILTERED = schema.Filters.model_validate({"max_characters": 10**9, "max_ratio": 1e9, "control": False})


class TextTask(Task):
    """What tasks on lines of text share: examining, filtering, tokenizing, and the split into parts."""

    def preprocessing(self, recipe: Recipe) -> dict[str, Any]:
        """What a model directory keeps of how texts are to be written for the model, if anything."""
        return {}

    def examine(self, recipe: Recipe, base: Path, on_progress: OnProgress | None = None) -> Examined:
        corpora = [(part.name, _with_files(_alone(part, recipe.data), base)) for part in recipe.data.parts]
        report = joined_report({name: check_corpus(data, on_progress) for name, data in corpora})
        sources = [side for side in report.sides if not side.name.endswith("target")]
        return Examined(report, DataFacts(report.counts.kept, sum(s.characters for s in sources), report.unit))

    def tokenizer_text(self, recipe: Recipe, base: Path) -> tuple[Chunks | MixedChunks, str]:
        texts = training_texts(recipe, base)
        return texts, fingerprint(texts.names)

    def prepare(
        self, recipe: Recipe, base: Path, cache: Path, *, start: Assets | None = None, progress: Progress | None = None
    ) -> Prepared:
        """Makes tokenizers and token stores.

        The tokenizers are those of the model that is fine-tuned, or the recipe's files, or are trained on its text.
        """
        tell = progress or (lambda stage, done, total: None)
        (texts, content), held_out = self.tokenizer_text(recipe, base), validation_texts(recipe, base)
        check_fields(self, recipe)
        prints = {"training": content}
        tokenizers = start.tokenizers if start is not None else None
        if tokenizers is None:
            tokenizers = make_tokenizers(recipe, base, cache, texts, content, tell, self.special_tokens(recipe))
        store = _store(cache, texts, tokenizers, content, "training text", tell)
        if not len(store):
            counts = store.manifest.counts
            raise DataError(
                f"no line is left to train on after filtering: {counts}; change data.filters", file=texts.names[0]
            )
        validation = None
        if held_out is not None:
            prints["validation"] = fingerprint(held_out.names)
            validation = _store(cache, held_out, tokenizers, prints["validation"], "validation text", tell)
            if not len(validation):
                raise DataError("no line is left to validate on: all lines are empty", file=held_out.names[0])
        return Prepared(Assets(tokenizers, preprocessing=self.preprocessing(recipe)), store, validation, prints)

    def open_store(self, directory: Path) -> Store:
        return Store(directory)

    def training_lines(self, recipe: Recipe, base: Path) -> tuple[str, Iterator[str]]:
        """Every source line (or line of text), without prefixes."""
        corpora = [_files(part, part, base) for part in recipe.data.parts]
        return corpora[0].sides[0], (text for files in corpora for text in _first_side(files))


def _first_side(files: Files) -> Iterator[str]:
    if files.text:
        field = files.fields[0] if files.fields else None
        lines = read_line_batches(files.text, format=files.format, field=field)
        yield from (text for batch in lines for text in batch.texts)
    else:
        pairs = read_pair_batches(files.source, files.target, format=files.format, fields=files.fields)
        yield from (text for batch in pairs for text in batch.sources)


def training_texts(recipe: Recipe, base: Path) -> Chunks | MixedChunks:
    """What is trained on."""
    data = recipe.data

    def chunks(part: schema.Part) -> Chunks:
        files = _files(part, part, base)
        if data.split and not data.validated:
            files = replace(files, part="training", share=data.split, either_side=bool(data.mixture))
        return Chunks(files, data.filters, part.languages)

    return _together(data, chunks)


def validation_texts(recipe: Recipe, base: Path) -> Chunks | MixedChunks | None:
    """What is validated on; None where the recipe names no validation text and splits none off."""
    data = recipe.data
    if not (data.validated or data.split):
        return None

    def chunks(part: schema.Part) -> Chunks:
        files = _files(part.validation if data.validated else part, part, base)
        if not data.validated:
            files = replace(files, part="validation", share=data.split, either_side=bool(data.mixture))
        return Chunks(files, UNFILTERED, part.languages)

    return _together(data, chunks)


def _together(data: schema.Data, chunks: Callable[[schema.Part], Chunks]) -> Chunks | MixedChunks:
    parts = {part.name: chunks(part) for part in data.parts}
    return MixedChunks(parts) if data.mixture else parts[""]


def _alone(part: schema.Part, data: schema.Data) -> schema.Data:
    """The data section of one part."""
    own = {name: getattr(part, name) for name in schema.Corpus.model_fields}
    return data.model_copy(update={**own, "mixture": ()})


def _with_files(data: schema.Data, base: Path) -> schema.Data:
    """The data section with every path and glob replaced by the files that it matches."""

    def found(texts: schema.Texts) -> dict[str, tuple[str, ...]]:
        return {name: tuple(expand_paths(getattr(texts, name), base)) for name in texts.given}

    held_out = {part: getattr(data, part) for part in ("validation", "test")}
    expanded = {part: texts.model_copy(update=found(texts)) for part, texts in held_out.items()}
    return data.model_copy(update={**found(data), **expanded})


def _files(texts: schema.Texts, corpus: schema.Corpus, base: Path) -> Files:
    return Files(
        source=expand_paths(texts.source, base),
        target=expand_paths(texts.target, base),
        text=expand_paths(texts.text, base),
        format=corpus.format,
        fields=corpus.fields,
        prefix=corpus.prefix,
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
    tell("tokenizer", texts.counts.kept, texts.counts.kept)
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
            error.args = (f"{side} side: {error}",)
            raise
    return TokenizerPair(*trained)


def _store(
    cache: Path, texts: Chunks | MixedChunks, pair: TokenizerPair, content: str, stage: str, tell: Progress
) -> Store:
    sides: dict[str, Encoder] = dict(zip(texts.text_sides, (pair.source, pair.target), strict=False))
    if isinstance(texts, MixedChunks):
        sides[PART] = LabelCodes(list(texts.parts))
    return make_store(cache, texts, sides, {"content": content, "tokenizers": pair.fingerprint}, stage, tell)


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
    tell(stage, store.manifest.counts.kept, store.manifest.counts.kept)
    return store


def _key(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
