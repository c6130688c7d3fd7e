"""Runs of the recipes of other tasks become shipped models too: stored, measured, listed by task, opened by name."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small_pictures import stripes, write_idx
from small_sounds import SETTINGS, write_recordings
from small_tables import labelled_texts
from small_texts import lines_of_order
from verbs import run

from headwise.bundle import shipped
from headwise.bundle.directory import open_bundle
from headwise.config.recipe import load_recipe
from headwise.errors import WorkFailed
from headwise.interop.ctranslate2.export import is_current
from headwise.workflows import package_model as workflow
from headwise.workflows.models import shipped_models
from headwise.workflows.package_model import Shipped, main, ship
from headwise.workflows.train import train

ABOUT = (shipped.FOLDER / "about.toml").read_text(encoding="utf-8")
FEW = ["training.validate_every=4", "training.save_every=4", "training.schedule=constant", "training.warmup=1"]


def write_pictures(folder: Path) -> None:
    (folder / "fashion-mnist").mkdir()
    for name, count in (("train", 200), ("t10k", 40)):
        pictures, labels = stripes(count, size=28, seed=count)
        write_idx(folder / "fashion-mnist", pictures, labels.tolist(), name)
    for file in list((folder / "fashion-mnist").iterdir()):
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))


def write_questions(folder: Path) -> None:
    (folder / "banking77").mkdir()
    for number, (name, count) in enumerate((("train", 200), ("val", 30), ("test", 40))):
        rows = [f"{text},{label}\n" for text, label in labelled_texts(count, number)]
        content = "".join(["text,label\n", *rows]).encode()
        (folder / "banking77" / f"{name}.csv.gz").write_bytes(gzip.compress(content))


def write_digits(folder: Path) -> None:
    for number, (name, count) in enumerate((("train", 24), ("val", 6), ("test", 6))):
        header, *rows = write_recordings(folder / "digits" / name, count, seed=number).read_text().splitlines()
        table = "\n".join([header, *(f"{name}/{row}" for row in rows)])
        (folder / "digits" / f"{name}.csv").write_text(table, encoding="utf-8")


def write_play(folder: Path) -> None:
    (folder / "shakespeare").mkdir()
    text = "\n".join(lines_of_order(300, 1))
    (folder / "shakespeare" / "input.txt.gz").write_bytes(gzip.compress(text.encode()))


SOUND_SIZES = [f"model.{name}={value}" for name, value in SETTINGS.items()]
SIZES = ["model.model_dim=16", "model.num_heads=2", "model.ff_dim=16", "model.layers=1", *FEW]
RECIPES: dict[str, tuple[Callable[[Path], None], list[str]]] = {
    "fashion-mnist": (write_pictures, [*SIZES, 'data.labels=["lying", "standing"]', "training.epochs=3"]),
    "banking77": (write_questions, [*SIZES, "tokenizer.size=300", "training.epochs=4", "training.learning_rate=0.02"]),
    "digits": (write_digits, [*SOUND_SIZES, *FEW, "training.steps=8"]),
    "shakespeare-char": (write_play, [*SIZES, "training.steps=8", "training.batch_tokens=512"]),
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Shipped]:
    """All four, in a folder of their own. Do not write into it."""
    place = tmp_path_factory.mktemp("tasks")
    folder = place / "shipped"
    folder.mkdir()
    (folder / "about.toml").write_text(ABOUT, encoding="utf-8")
    found = {}
    for name, (write, overrides) in RECIPES.items():
        data = place / name
        data.mkdir()
        write(data)
        recipe, base = load_recipe(name, overrides, data=data)
        finished = train(recipe, base, data / "run")
        given = {} if recipe.data.test.given else {"test": str(data / recipe.data.text[0])}
        found[name] = ship(finished.run, name, folder=folder, given=given)
    return found


@pytest.fixture
def shipped_tasks(made: dict[str, Shipped], monkeypatch: pytest.MonkeyPatch) -> Path:
    """For one test these four are the only shipped models."""
    folder = made["digits"].path.parent
    monkeypatch.setattr(shipped, "FOLDER", folder)
    return folder


@pytest.mark.parametrize(
    ("name", "precisions", "metrics", "tests"),
    [
        ("fashion-mnist", {"float16"}, {"accuracy", "macro-F1"}, {"t10k-images-idx3-ubyte"}),
        ("banking77", {"float16", "int8"}, {"accuracy", "macro-F1"}, {"val", "test"}),
        ("digits", {"float16", "int8"}, {"WER", "CER"}, {"val", "test"}),
        ("shakespeare-char", {"float16"}, {"perplexity", "bits per character"}, {"input (trained on)"}),
    ],
)
def test_the_card_has_the_scores_of_every_form_and_no_path_of_the_machine(
    made: dict[str, Shipped], name: str, precisions: set[str], metrics: set[str], tests: set[str]
) -> None:
    bundle = open_bundle(made[name].path)
    card = bundle.card
    assert bundle.precision == "float16"
    assert {(one["test"], one["engine"], one["metric"]) for one in card["scores"]} == {
        (test, precision, metric) for test in tests for precision in precisions for metric in metrics
    }
    assert all(one["signature"] and np.isfinite(one["value"]) for one in card["scores"])
    assert set(made[name].same) == precisions
    assert card["stored"]["same_float16"] >= 0.95 * card["stored"]["sentences"] > 0
    assert set(card["about"]) == {"trained_on", "good_for", "limits", "licence", "source"}
    assert card["training"]["updates"] > 0
    assert str(made[name].path.parent.parent) not in json.dumps(card)
    fast = made[name].path / "ctranslate2" / "int8"
    assert is_current(bundle, fast, "int8") == ("int8" in precisions)


def test_they_are_listed_by_task_with_the_score_of_each(shipped_tasks: Path) -> None:
    models = shipped_models()
    assert [(model.task, model.name) for model in models] == [
        ("generate", "shakespeare-char"), ("transcribe", "digits"), ("classify", "banking77"),
        ("classify", "fashion-mnist"),
    ]  # fmt: skip
    listed = run("models").lines
    assert [line.split()[:2] for line in listed[1:5]] == [[model.task, model.name] for model in models]
    for line, metric in zip(listed[1:5], ("perplexity", "WER", "accuracy", "accuracy"), strict=True):
        assert f" {metric} " in line
    assert "CC BY-SA 4.0" in "\n".join(listed)
    assert {record["task"] for record in json.loads(run("models", "--json").out)} == {
        "generate", "transcribe", "classify"
    }  # fmt: skip


def test_commands_find_them_by_name_and_no_translator_among_them(
    shipped_tasks: Path, made: dict[str, Shipped], tmp_path: Path
) -> None:
    picture, sound = tmp_path / "lying.png", next((shipped_tasks.parent / "digits" / "digits" / "test").glob("*.wav"))
    Image.fromarray(stripes(1, size=28)[0][0]).save(picture)
    for arguments in (
        ["classify", "--model", "fashion-mnist", picture],
        ["classify", "--model", "banking77", "the dog runs"],
        ["transcribe", "--model", "digits", sound],
        ["generate", "--model", "shakespeare-char", "one two", "--max-tokens", "5", "--seed", "1"],
        ["info", "digits"],
    ):
        done = run(*arguments)
        assert (done.code, bool(done.out)) == (0, True), done.err
    refused = run("translate", "--to", "de", "red dog")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    wrong = run("translate", "--model", "banking77", "red dog")
    assert "is a model of the task 'classify'; use headwise classify" in wrong.err


def test_a_model_of_these_tasks_has_half_the_room_of_a_translator(
    made: dict[str, Shipped], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workflow, "LARGEST", 1000)
    (tmp_path / "about.toml").write_text(ABOUT, encoding="utf-8")
    data = made["banking77"].path.parent.parent / "banking77"
    with pytest.raises(WorkFailed, match="a shipped model has at most"):
        ship(data / "run", "banking77", folder=tmp_path)


def test_without_held_out_data_the_command_asks_for_some(
    shipped_tasks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(shipped_tasks.parent / "shakespeare-char" / "run"), "shakespeare-char"]) == 2
    err = capsys.readouterr().err
    assert "neither data.validation nor data.test; give --test FILE" in err
    assert err.count("\n") == 1
