"""From a recipe's files to batches: trained or given tokenizers, reuse, and one clear line for each mistake."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headwise.bundle.assets import Assets
from headwise.config import schema
from headwise.data.cursor import Batches, Cursor, walk
from headwise.errors import DataError, HeadwiseError, RecipeError
from headwise.tasks import find_task
from headwise.tasks import text_data as module
from headwise.tasks.interface import Prepared
from headwise.text.tokenizer import Tokenizer, TokenizerPair

WORDS = ["red", "house", "river", "stands", "beside", "the", "old", "bridge", "and", "flows", "under", "it"]


def lines(count: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    return [" ".join(chance.choices(WORDS, k=chance.randint(2, 9))) for _ in range(count)]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    for name, count, seed in (("train.en", 200, 1), ("val.en", 20, 2)):
        text = lines(count, seed)
        (tmp_path / name).write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
        german = name.replace(".en", ".de")
        (tmp_path / german).write_text("".join(f"{line[::-1]}\n" for line in text), encoding="utf-8")
    return tmp_path


def recipe(**changes: dict[str, Any]) -> schema.Recipe:
    values: dict[str, dict[str, Any]] = {
        "data": {
            "source": "train.en",
            "target": "train.de",
            "languages": ["en", "de"],
            "validation": {"source": "val.en", "target": "val.de"},
        },
        "tokenizer": {"size": 300},
        "training": {"batch_tokens": 200},
    }
    for section, settings in changes.items():
        values[section] = values.get(section, {}) | settings
    return schema.Recipe.model_validate(values)


def language_model(**changes: dict[str, Any]) -> schema.Recipe:
    data = {"text": "train.en", "validation": {"text": "val.en"}}
    tokenizer = {"kind": "word", "size": 50} | changes.get("tokenizer", {})
    return schema.Recipe.model_validate({"model": {"family": "lm"}, "data": data, "tokenizer": tokenizer})


def prepare(recipe: schema.Recipe, base: Path, cache: Path, **options: Any) -> Prepared:
    return find_task(recipe.task_name).prepare(recipe, base, cache, **options)


def training_batches(prepared: Prepared, recipe: schema.Recipe, max_length: int | None = None) -> Batches:
    return find_task(recipe.task_name).batches(prepared.training, recipe, prepared.assets, max_length)


def test_a_translation_recipe_becomes_batches_of_its_text(base: Path) -> None:
    prepared = prepare(recipe(), base, base / "cache")
    assert prepared.assets.tokenizers.shared
    assert prepared.assets.tokenizers.source.size == 300
    assert (len(prepared.training), prepared.validation and len(prepared.validation)) == (200, 20)
    seen: list[int] = []
    for batch, _ in walk(training_batches(prepared, recipe()), epochs=1):
        seen += batch.lines.tolist()
    assert sorted(seen) == list(range(1, 201))
    text = prepared.assets.tokenizers.source.decode(batch.inputs[0][0].tolist())
    assert text == (base / "train.en").read_text(encoding="utf-8").split("\n")[batch.lines[0] - 1]


def test_a_language_model_recipe_becomes_blocks(base: Path) -> None:
    prepared = prepare(language_model(), base, base / "cache")
    assert prepared.assets.tokenizers.source.kind == "word"
    total = sum(batch.tokens for batch, _ in walk(training_batches(prepared, language_model(), 16), epochs=1))
    assert total == sum(len(line.split()) + 1 for line in lines(200, 1))


def test_a_second_time_everything_is_reused(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = prepare(recipe(), base, base / "cache")
    before = sorted(os.listdir(base / "cache"))

    def unwanted(*_: object) -> None:
        raise AssertionError("done again")

    monkeypatch.setattr(Tokenizer, "train", unwanted)
    monkeypatch.setattr(module, "write_files", unwanted)
    second = prepare(recipe(), base, base / "cache")
    assert second.assets.tokenizers.source == first.assets.tokenizers.source
    assert second.fingerprints == first.fingerprints
    assert sorted(os.listdir(base / "cache")) == before


@pytest.mark.parametrize("change", ["content", "tokenizer", "filters"])
def test_a_change_of_content_tokenizer_or_filters_is_noticed(base: Path, change: str) -> None:
    first = prepare(recipe(), base, base / "cache")
    changed = recipe()
    if change == "content":
        for side in ("en", "de"):
            with (base / f"train.{side}").open("a", encoding="utf-8") as file:
                file.write("one more\n")
    elif change == "tokenizer":
        changed = recipe(tokenizer={"size": 310})
    else:
        changed = recipe(data={"filters": {"max_characters": 20}})
    second = prepare(changed, base, base / "cache")
    assert second.training.directory != first.training.directory


def test_two_vocabularies_are_learnt_from_their_own_sides(base: Path) -> None:
    pair = prepare(recipe(tokenizer={"shared": False}), base, base / "cache").assets.tokenizers
    assert not pair.shared
    english = lines(200, 1)
    lengths = [sum(map(len, side.encode_batch(english))) for side in (pair.source, pair.target)]
    assert lengths[0] < 0.9 * lengths[1]


def test_given_files_are_used_instead_of_training(base: Path) -> None:
    given = Tokenizer.train(lines(50, 9), schema.Tokenizer.model_validate({"kind": "char", "size": 400}))
    given.save(base / "mine.json")
    prepared = prepare(recipe(tokenizer={"files": ["mine.json"]}), base, base / "cache")
    assert prepared.assets.tokenizers.source == given
    with pytest.raises(RecipeError, match="3 files"):
        prepare(recipe(tokenizer={"files": ["mine.json"] * 3}), base, base / "cache")


def test_the_tokenizers_of_a_model_can_be_handed_in(base: Path) -> None:
    given = TokenizerPair.one(Tokenizer.train(["x"], schema.Tokenizer.model_validate({"kind": "byte"})))
    assert prepare(recipe(), base, base / "cache", start=Assets(given)).assets.tokenizers is given


def test_dropped_lines_are_counted_and_validation_is_not_filtered(base: Path) -> None:
    (base / "val.de").write_text("x" * 3000 + "\n" + (base / "val.de").read_text(encoding="utf-8").split("\n", 1)[1])
    prepared = prepare(recipe(data={"filters": {"max_characters": 30}}), base, base / "cache")
    counts = prepared.training.manifest.counts
    assert counts.lines == 200
    assert 0 < counts.dropped["max_characters"] == 200 - counts.kept
    assert prepared.validation is not None
    assert len(prepared.validation) == 20


def test_regularisation_draws_anew_each_epoch_and_again_the_same(base: Path) -> None:
    settings = recipe(tokenizer={"dropout": 0.3})
    prepared = prepare(settings, base, base / "cache")

    def pieces(epoch: int) -> dict[int, list[int]]:
        batches = training_batches(prepared, settings)
        found: dict[int, list[int]] = {}
        for index in range(batches.count(epoch)):
            batch = batches.make(Cursor(epoch, index))
            found |= dict(zip(batch.lines.tolist(), batch.inputs[0].tolist(), strict=True))
        return {line: list(np.trim_zeros(ids)) for line, ids in found.items()}

    first, second = pieces(1), pieces(2)
    assert pieces(1) == first != second
    tokenizer = prepared.assets.tokenizers.source
    assert all(tokenizer.decode(ids) == tokenizer.decode(second[line]) for line, ids in first.items())


def test_progress_names_its_stages_and_counts_lines(base: Path) -> None:
    told: list[tuple[str, int, int | None]] = []
    prepare(recipe(), base, base / "cache", progress=lambda *stage: told.append(stage))
    assert [stage for stage, done, total in told if done == total] == ["tokenizer", "training text", "validation text"]
    assert ("training text", 200, 200) in told


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"data": {"filters": {"max_characters": 1}}},
            r"train\.en: no line is left to train on after filtering: 200 lines: 0 kept",
        ),
        ({"tokenizer": {"size": 9000}}, r"tokenizer\.size = 9000 is more than this corpus allows"),
        ({"tokenizer": {"size": 9000, "shared": False}}, r"source side: tokenizer\.size = 9000 is more"),
        ({"data": {"source": "nowhere.en"}}, r"nowhere\.en: there is no such file"),
        ({"data": {"source": ()}}, "needs source and target in data"),
        ({"data": {"text": "train.en"}}, r"task 'translate' does not use data\.text, but source and target"),
        ({"model": {"family": "lm"}}, r"task 'generate' does not use data\.source, but text"),
        ({"data": {"target": "val.de"}}, r"train\.en: 200 lines, but .*val\.de has 20"),
    ],
)
def test_a_mistake_is_one_clear_line_and_leaves_no_store(base: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(HeadwiseError, match=message) as caught:
        prepare(recipe(**changes), base, base / "cache")
    assert "\n" not in str(caught.value)
    assert not list(base.glob("cache/training-*/manifest.json"))


def test_only_filtered_lines_left_is_told_when_the_tokenizer_is_given_too(base: Path) -> None:
    given = TokenizerPair.one(Tokenizer.train(["x"], schema.Tokenizer.model_validate({"kind": "byte"})))
    with pytest.raises(DataError, match="no line is left to train on"):
        prepare(recipe(data={"filters": {"max_characters": 1}}), base, base / "cache", start=Assets(given))


def test_the_training_lines_are_the_source_side_or_the_text(base: Path) -> None:
    for settings, side in ((recipe(), "source"), (language_model(), "text")):
        named = find_task(settings.task_name).training_lines(settings, base)
        assert named is not None
        assert (named[0], list(named[1])) == (side, lines(200, 1))
