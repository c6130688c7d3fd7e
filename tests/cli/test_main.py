"""The command itself: its help, its exit codes, and its one line for a mistake."""

from __future__ import annotations

import inspect
import sys
import tomllib
from pathlib import Path

import pytest
from command import Command

from headwise.cli import main
from headwise.cli.main import VERBS, function_of
from headwise.config.recipe import build_recipe, load_recipe, print_recipe
from headwise.errors import RecipeError, WorkFailed

RECIPE = """
[data]
source = "train.en"
target = "train.de"
[model]
preset = "tiny"
dropout = 0.3
[training]
epochs = 2
betas = [0.9, 0.95]
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE)
    return path


def first_line(verb: str) -> str:
    return (inspect.getdoc(function_of(verb)) or "").splitlines()[0]


def test_help_lists_every_verb_with_one_line_in_order(headwise: Command) -> None:
    code, out, _ = headwise("--help")
    assert code == 0
    places = []
    for verb in VERBS:
        (row,) = [line for line in out.splitlines() if line.removeprefix("│").split()[:1] == [verb]]
        assert first_line(verb) in row
        places.append(out.index(row))
    assert places == sorted(places)
    assert headwise() == (0, out, "")


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_every_verb_has_an_example(headwise: Command, verb: str) -> None:
    code, out, _ = headwise(verb, "--help")
    assert code == 0
    assert first_line(verb) in out
    assert f"headwise {verb} " in out.split("Example", 1)[1]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["nonsense"], "nonsense"),
        (["train"], "give a recipe"),
        (["train", "--steps", "4", "recipe.toml"], "--steps"),
        (["look", "--model", "x", "--layer", "two", "text"], "--layer"),
    ],
)
def test_a_wrong_call_is_one_line_and_exits_with_2(headwise: Command, arguments: list[str], problem: str) -> None:
    code, out, err = headwise(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("headwise: error: ")
    assert problem in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("mdel.x=1", ["--set mdel.x=1", "unknown key 'mdel'", "did you mean 'model'?"]),
        ("model.droput=0.1", ["--set model.droput=0.1", "'model.droput'", "did you mean 'model.dropout'?"]),
        ("training.steps=many", ["--set training.steps=many", "training.steps must be a valid integer", "'many'"]),
        ("training.steps=0", ["training.steps must be greater than or equal to 1", "not 0"]),
        ("training.optimizer=adan", ["training.optimizer must be", "'adam'", "not 'adan'"]),
        ("model.preset=tinny", ["unknown model.preset 'tinny'", "tiny, small"]),
        ("model.layers=3", ["unknown key 'model.layers'", "did you mean 'model.encoder_layers'?"]),
        ("training", ["--set training", "section.key=value"]),
        ("training.steps.more=1", ["'steps' is a value, not a section"]),
    ],
)
def test_a_wrong_setting_names_the_key_the_place_and_the_remedy(
    headwise: Command, recipe: Path, setting: str, words: list[str]
) -> None:
    code, out, err = headwise("train", "--set", "training.steps=5", "--set", setting, recipe)
    assert (code, out) == (2, "")
    assert err.startswith("headwise: error: ")
    assert err.count("\n") == 1
    for word in words:
        assert word in err
    assert list(recipe.parent.iterdir()) == [recipe]


def test_a_mistake_in_the_file_names_the_file(headwise: Command, recipe: Path) -> None:
    recipe.write_text(RECIPE.replace("epochs", "epoch"))
    _, _, err = headwise("train", recipe)
    assert err == f"headwise: error: {recipe}: unknown key 'training.epoch'; did you mean 'training.epochs'?\n"
    recipe.write_text("[training\n")
    code, _, err = headwise("train", recipe)
    assert code == 2
    assert f"{recipe}: not valid TOML" in err
    assert err.count("\n") == 1


def test_a_missing_recipe_is_named_with_the_nearest_shipped_one(headwise: Command, tmp_path: Path) -> None:
    assert headwise("train", "dmo")[0] == 2
    assert "did you mean 'demo'?" in headwise("train", "dmo")[2]
    assert "neither a file nor a shipped recipe" in headwise("train", tmp_path / "none.toml")[2]
    assert "is a folder" in headwise("train", tmp_path)[2]


def test_a_shipped_recipe_says_how_to_give_it_its_corpus(headwise: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADWISE_DATA", raising=False)
    code, _, err = headwise("train", "demo")
    assert code == 2
    assert "HEADWISE_DATA" in err


def test_debug_shows_the_traceback_of_the_same_mistake(monkeypatch: pytest.MonkeyPatch, recipe: Path) -> None:
    monkeypatch.setenv("HEADWISE_DEBUG", "")
    monkeypatch.setattr(sys, "argv", ["headwise", "--debug", "train", "--set", "mdel.x=1", str(recipe)])
    with pytest.raises(RecipeError, match="mdel"):
        main.run()


def test_the_printed_recipe_is_toml_that_means_the_same(headwise: Command, recipe: Path) -> None:
    code, out, err = headwise("train", recipe, "--set", "training.label_smoothing=0.2", "--print-recipe")
    assert (code, err) == (0, "")
    values = tomllib.loads(out)
    assert (values["model"]["model_dim"], values["model"]["dropout"]) == (128, 0.3)
    assert values["training"]["label_smoothing"] == 0.2
    assert values["training"]["warmup"] == 4000
    printed = build_recipe(values)
    original, _ = load_recipe(recipe, ["training.label_smoothing=0.2"])
    assert tomllib.loads(print_recipe(printed)) == values
    assert printed.model_copy(update={"model": original.model}) == original


def test_a_printed_recipe_for_fine_tuning_can_be_trained_as_it_is(recipe: Path) -> None:
    original, _ = load_recipe(recipe, ["model.from=elsewhere"])
    again = build_recipe(tomllib.loads(print_recipe(original)))
    assert again.model == original.model
    assert "model_dim" not in print_recipe(original)  # the model that it starts from brings it


def test_work_that_failed_exits_with_1_in_one_line(
    headwise: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(path: Path) -> None:
        raise WorkFailed("the disk\nis full")

    monkeypatch.setattr("headwise.workflows.info.model_info", fail)
    assert headwise("info", tmp_path) == (1, "", "headwise: error: the disk is full\n")


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")]
)
def test_memory_that_is_not_there_is_one_line(
    headwise: Command, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*arguments: object) -> None:
        raise error

    monkeypatch.setattr("headwise.workflows.info.model_info", fail)
    code, _, err = headwise("info", "x")
    assert code == 1
    assert err.startswith("headwise: error: there is not enough memory for this; ")


def test_control_c_outside_of_training_exits_with_130(
    headwise: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupt(path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("headwise.workflows.info.model_info", interrupt)
    assert headwise("info", tmp_path) == (130, "", "headwise: stopped\n")


def test_the_version_is_told(headwise: Command) -> None:
    import headwise as package

    assert headwise("--version") == (0, f"headwise {package.__version__}\n", "")


@pytest.mark.parametrize(
    "arguments",
    [("train", "{}"), ("info", "{}"), ("translate", "--model", "{}", "x"), ("translate", "--input", "{}", "--to", "de"),
     ("check", "--source", "{}", "--target", "{}"), ("plot", "{}"), ("average", "{}", "out")],
)  # fmt: skip
def test_a_file_name_that_is_longer_than_the_system_allows_is_one_line(
    headwise: Command, arguments: tuple[str, ...]
) -> None:
    code, _, err = headwise(*(word.format("x" * 300) for word in arguments))
    assert code == 2
    assert err.count("\n") == 1
    assert "Traceback" not in err
