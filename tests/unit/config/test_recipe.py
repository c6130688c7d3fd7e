from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any, get_args

import pytest
import torch

from headwise.config.families import family_names, find_family
from headwise.config.recipe import (
    absolute_paths,
    build_recipe,
    load_recipe,
    parse_override,
    print_recipe,
    shipped_recipes,
)
from headwise.config.schema import Recipe
from headwise.errors import RecipeError, UsageError
from headwise.models.registry import build_model


def test_an_empty_recipe_is_all_defaults() -> None:
    assert build_recipe({}) == Recipe()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("training.steps=100", ("training.steps", 100)),
        ("training.learning_rate=2.5e-3", ("training.learning_rate", 2.5e-3)),
        ("tokenizer.shared=false", ("tokenizer.shared", False)),
        ("data.languages=['en', 'de']", ("data.languages", ["en", "de"])),
        ("data.columns=message, intent", ("data.columns", ["message", "intent"])),
        ("data.columns=1,2", ("data.columns", ["1", "2"])),
        ("data.columns='one, two'", ("data.columns", "one, two")),
        ("data.source=a,b.en", ("data.source", "a,b.en")),
        ("data.source=a=b.en", ("data.source", "a=b.en")),
        ("model.from= runs/base ", ("model.from", "runs/base")),
        ("model.preset=", ("model.preset", "")),
    ],
)
def test_a_setting_is_toml_or_else_a_word(text: str, expected: tuple[str, Any]) -> None:
    assert parse_override(text) == expected


@pytest.mark.parametrize("text", ["training.steps", "=3", " =3"])
def test_a_setting_without_key_or_value_is_refused(text: str) -> None:
    with pytest.raises(RecipeError, match=r"section\.key=value"):
        parse_override(text)


def test_the_last_setting_of_a_key_counts_and_goes_over_the_file() -> None:
    recipe = build_recipe({"training": {"steps": 1}}, ["training.steps=2", "training.steps=3"])
    assert recipe.training.steps == 3


def test_one_path_stands_for_a_list_of_one() -> None:
    recipe = build_recipe({"data": {"source": "a", "target": ["b", "c"]}})
    assert (recipe.data.source, recipe.data.target) == (("a",), ("b", "c"))


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"trainng": {}}, "here: unknown key 'trainng'; did you mean 'training'?"),
        ({"data": {"validation": {"sorce": "x"}}}, "unknown key 'data.validation.sorce'; did you mean 'data.valid"),
        ({"model": {"frm": "x"}}, "did you mean 'model.from'?"),
        ({"model": {"zzzz": 1}}, "unknown key 'model.zzzz'; there are family, preset, from"),
        ({"training": {"steps": "10"}}, "here: training.steps must be a valid integer, not '10'"),
        ({"training": {"steps": 1.5}}, "training.steps must be a valid integer, not 1.5"),
        ({"training": {"epochs": True}}, "training.epochs must be a valid integer, not True"),
        ({"tokenizer": {"shared": 1}}, "tokenizer.shared must be a valid boolean, not 1"),
        ({"model": {"dropout": 1.0}}, "model.dropout must be less than 1, not 1.0"),
        ({"training": {"betas": [0.9]}}, "training.betas"),
        ({"training": 5}, "here: training must be"),
        ({"data": {"source": [1]}}, "data.source must be a valid string, not 1"),
    ],
)
def test_a_wrong_value_is_one_line_with_place_key_and_remedy(values: dict[str, Any], line: str) -> None:
    with pytest.raises(RecipeError) as error:
        build_recipe(values, origin="here")
    assert line in str(error.value)
    assert "\n" not in str(error.value)


def test_a_recipe_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Recipe().training.steps = 5  # type: ignore[misc]


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RecipeError, match=r"recipe\.toml: cannot be read"):
        load_recipe(path)


def test_paths_are_relative_to_the_recipe_and_globs_stay_globs(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text(
        '[data]\nsource = ["a.en", "/abs/*.en"]\ntarget = "sub/*.de"\n[data.validation]\nsource = "val.en"\n'
        '[tokenizer]\nfiles = "tok.json"\n[model]\nfrom = "../base"\n'
    )
    recipe, base = load_recipe(tmp_path / "recipe.toml")
    fixed = absolute_paths(recipe, base)
    assert fixed.data.source == (f"{tmp_path}/a.en", "/abs/*.en")
    assert fixed.data.target == (f"{tmp_path}/sub/*.de",)
    assert fixed.data.validation.source == (f"{tmp_path}/val.en",)
    assert fixed.tokenizer.files == (f"{tmp_path}/tok.json",)
    assert fixed.model.from_ == f"{tmp_path}/../base"
    assert absolute_paths(fixed, Path("/elsewhere")) == fixed


def test_paths_of_set_are_relative_to_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "mine.toml").write_text('[data]\nsource = "a.en"\ntarget = "a.de"\n')
    (tmp_path / "base").mkdir()
    monkeypatch.chdir(tmp_path)
    overrides = ["data.target=b.de", 'data.validation.source=["v.en", "/v2.en"]', "model.from=base", "data.text=-"]
    recipe = absolute_paths(*load_recipe("recipes/mine.toml", overrides))
    assert recipe.data.source == (str(tmp_path / "recipes" / "a.en"),)
    assert recipe.data.target == (str(tmp_path / "b.de"),)
    assert recipe.data.validation.source == (str(tmp_path / "v.en"), "/v2.en")
    assert recipe.data.text == ("-",)
    assert recipe.model.from_ == str(tmp_path / "base")
    named = absolute_paths(*load_recipe("recipes/mine.toml", ["model.from=multi30k-en-de"]))
    assert named.model.from_ == "multi30k-en-de"


def test_the_papers_own_settings_are_one_word_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADWISE_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    recipe, base = load_recipe("paper-base", ["data.source=a.en", "data.target=a.de"])
    assert (base, recipe.data.source) == (Path(), (str(tmp_path / "a.en"),))
    training, sizes = recipe.training, recipe.model.settings.model_dump()
    assert [sizes[name] for name in ("model_dim", "num_heads", "encoder_layers", "ff_dim", "dropout", "norm")] == [
        512, 8, 6, 2048, 0.1, "post",
    ]  # fmt: skip
    assert (training.schedule, training.warmup, training.steps, training.betas) == ("noam", 4000, 100_000, (0.9, 0.98))
    assert (training.label_smoothing, recipe.decoding.beam, recipe.decoding.length_penalty) == (0.1, 4, 0.6)


@pytest.mark.parametrize("name", [name for name in shipped_recipes() if name != "paper-base"])
def test_a_shipped_recipe_is_right_and_finds_its_corpus_by_the_variable(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWISE_DATA", str(tmp_path))
    recipe, base = load_recipe(name)
    assert base == tmp_path
    assert load_recipe(name, data=tmp_path / "own")[1] == tmp_path / "own"
    assert all(part.given for part in recipe.data.parts)
    assert recipe.training.steps or recipe.training.epochs or recipe.training.minutes
    assert print_recipe(recipe)


@pytest.mark.parametrize(
    "override",
    [
        "training.threads=1000000", "tokenizer.size=1000000000000", f"training.seed={2**64}",
        "training.accumulate=10000000", "training.learning_rate=inf",
        "decoding.beam=1000000", f"training.seed={'9' * 9000}", f"{'a.' * 20000}b=1",
        "training.steps=5\ntraining.seed=3", f"data.languages={'x' * 300}", f"training.best={'[' * 100000}",
        f"training.validation_sentences={2**63}", f"training.patience={2**64}", f"model.max_length={2**63}",
    ],
    ids=lambda override: override[:30],
)  # fmt: skip
def test_a_value_that_no_machine_can_mean_is_one_short_line(override: str) -> None:
    with pytest.raises(RecipeError) as caught:
        build_recipe({"training": {"steps": 1}}, [override])
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


NUMBERS = [0, -1, 10**18, 2**63, 2**64, float("nan"), float("inf"), -float("inf"), 1e-300, 1e308, "x", True, [], {}]


def numeric_settings() -> Iterator[tuple[str, str]]:
    """(family, key) of every setting that is a number, of all families."""
    for section, schema in Recipe.model_fields.items():
        if section not in ("model", "task") and isinstance(schema.annotation, type):
            for name, field in schema.annotation.model_fields.items():
                if _is_number(field.annotation):
                    yield "transformer", f"{section}.{name}"
    for family in family_names():
        declared = find_family(family)
        assert declared is not None
        for name, field in declared.settings.model_fields.items():
            if _is_number(field.annotation):
                yield family, f"model.{name}"


def _is_number(annotation: Any) -> bool:
    return annotation in (int, float) or any(_is_number(inner) for inner in get_args(annotation))


@pytest.mark.parametrize(("family", "key"), list(numeric_settings()), ids=lambda part: part)
def test_no_number_of_any_setting_is_more_than_one_line_or_beyond_what_libraries_take(family: str, key: str) -> None:
    section, _, name = key.partition(".")
    for number in NUMBERS:
        values: dict[str, Any] = {"model": {"family": family}}
        values.setdefault(section, {})[name] = number
        recipe, problem = None, ""
        try:
            recipe = build_recipe(values)
        except RecipeError as error:
            problem = str(error)
        assert "\n" not in problem
        assert len(problem) < 500
        if recipe is not None:
            accepted = getattr(recipe.model.settings if section == "model" else getattr(recipe, section), name)
            assert not isinstance(accepted, int) or accepted < 2**63, number


@pytest.mark.parametrize(
    ("family", "name"), [("longformer", "window"), ("bigbird", "block"), ("performer", "features")]
)
def test_what_a_short_text_would_be_padded_to_or_drawn_for_is_bounded(family: str, name: str) -> None:
    with pytest.raises(RecipeError, match=f"{name} must be less than or equal to"):
        build_recipe({"model": {"family": family, name: 10**6}})


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 100_000,
        ".".join(["a"] * 20_000) + " = 1",
        "a = " + "{a=" * 500 + "1" + "}" * 500,
        "#" * 2_000_000,
    ],
)
def test_a_recipe_that_is_too_deep_or_too_large_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "deep.toml").write_text(text)
    with pytest.raises(RecipeError, match=r"deep\.toml: (not valid TOML|cannot be read)") as caught:
        load_recipe(tmp_path / "deep.toml")
    assert "\n" not in str(caught.value)


def test_a_name_that_is_longer_than_the_system_allows_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="longer than the system allows"):
        load_recipe("r" * 300 + ".toml")


@pytest.mark.parametrize("name", ["imdb", "listops"])
def test_a_recipe_of_long_texts_builds_with_every_attention_that_its_comment_names(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWISE_DATA", "corpora")
    recipe = resources.files("headwise.config") / "recipes" / f"{name}.toml"
    comment = recipe.read_text(encoding="utf-8").partition("Other attention:")[2].partition("task =")[0]
    named = set(re.findall(r"\w+", comment)) & set(family_names())
    assert named == {"bert", "bigbird", "performer"}
    for family in (*named, "longformer"):
        settings = (f"model.family={family}", f"model.preset={family}-tiny")
        dropped = ("model.attention_dropout=0.0",) if family == "bert" else ()
        model = load_recipe(name, [*settings, *dropped])[0].model
        with torch.device("meta"):
            network = build_model(family, {"vocab": 100, "classes": 2, **model.settings.model_dump(mode="json")})
        assert network.max_length == model.settings.longest
        assert getattr(model.settings, "attention_dropout", 0.0) == 0.0  # only the attention differs
