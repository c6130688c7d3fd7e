"""`train`, `check`, `classify` and `evaluate` on pictures, as a user has them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image
from small_pictures import stripes, write_folder, write_picture_recipe
from verbs import run

from headwise.config.recipe import load_recipe
from headwise.workflows.train import train


@pytest.fixture(scope="module")
def stripes_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that tells stripes apart, beside lying.png and standing.png."""
    folder = tmp_path_factory.mktemp("stripes")
    loaded, base = load_recipe(write_picture_recipe(folder, training={"steps": 80}))
    train(loaded, base, folder / "run")
    pictures, _ = stripes(2, seed=4)
    for pixels, name in zip(pictures, ("lying", "standing"), strict=True):
        Image.fromarray(pixels).save(folder / f"{name}.png")
    return folder / "run/model"


def test_pictures_get_labels_in_their_order(stripes_model: Path) -> None:
    folder = stripes_model.parents[1]
    done = run("classify", "--model", stripes_model, folder / "standing.png", folder / "lying.png")
    assert [line.split("\t")[0] for line in done.lines] == ["standing", "lying"]
    piped = run("classify", "--model", stripes_model, "--json", given=f"{folder / 'lying.png'}\n\n".encode())
    assert [json.loads(line)["label"] for line in piped.lines] == ["lying", None]


def test_evaluate_reads_idx_files_and_folders(stripes_model: Path, tmp_path: Path) -> None:
    test = stripes_model.parents[1] / "test-images-idx3-ubyte"
    done = run("evaluate", "--model", stripes_model, "--images", test)
    assert done.lines[0].startswith("accuracy")
    assert "rows:40|labels:2" in done.lines[0]
    pictures, labels = stripes(6, seed=4)
    for number, (pixels, label) in enumerate(zip(pictures, labels, strict=True)):
        folder = tmp_path / ("lying", "standing")[label]
        folder.mkdir(exist_ok=True)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    figures = json.loads(run("evaluate", "--model", stripes_model, "--images", tmp_path, "--json").out)
    assert figures["rows"] == 6
    assert figures["accuracy"] >= 0.8


def test_the_card_has_scores_and_a_calibration(stripes_model: Path) -> None:
    card = json.loads((stripes_model / "card.json").read_text())
    assert card["temperature"] > 0
    preprocessing = json.loads((stripes_model / "preprocessing.json").read_text())
    assert (preprocessing["kind"], preprocessing["size"], preprocessing["channels"]) == ("images", 8, 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["classify", "--model", "{model}", "nowhere.png"], "nowhere.png: there is no such file"),
        (["classify", "--model", "{model}", "{folder}/recipe.toml"], "recipe.toml: is not a picture"),
        (["evaluate", "--model", "{model}", "--images", "nowhere"], "nowhere: there is no such file or folder"),
        (["evaluate", "--model", "{model}", "--images", "{folder}/recipe.toml"], "is neither a folder of classes"),
        (["check", "--images", "nowhere"], "nowhere: there is no such file or folder"),
        (["train", "--images", "{folder}", "--output", "run"], "is not in the folder of a class"),
    ],
)
def test_a_wrong_call_is_one_line_that_names_the_file(stripes_model: Path, arguments: list[str], words: str) -> None:
    done = run(*(word.format(model=stripes_model, folder=stripes_model.parents[1]) for word in arguments))
    assert done.code == 2
    assert words in done.err
    assert len(done.err.splitlines()) == 1


def test_check_counts_pictures_and_names_the_bad_ones(tmp_path: Path) -> None:
    write_folder(tmp_path, {"cat": 6, "dog": 7})
    (tmp_path / "cat/0.png").write_bytes(b"text")
    done = run("check", "--images", tmp_path)
    assert done.code == 0
    assert "13 pictures = 12 kept + dropped by filters: not-a-picture 1" in done.out
    assert "cat/0.png" in done.out
    (tmp_path / "bird").mkdir()
    broken = run("check", "--images", tmp_path)
    assert broken.code == 1
    assert "classes whose folder has no picture: 1" in broken.out


def test_a_folder_is_all_that_training_needs(tmp_path: Path) -> None:
    write_folder(tmp_path / "pictures", {"red": 6, "green": 6})
    settings = ("training.steps=2", "model.model_dim=8", "model.layers=1", "model.num_heads=2", "training.threads=1")
    sets = [word for setting in settings for word in ("--set", setting)]
    done = run("train", "--images", tmp_path / "pictures", "--output", tmp_path / "run", *sets)
    assert done.code == 0, done.err
    assert (tmp_path / "run/model/preprocessing.json").is_file()
    assert run("info", tmp_path / "run/model").code == 0


def test_look_draws_the_heads_over_the_picture(stripes_model: Path, tmp_path: Path) -> None:
    picture = stripes_model.parents[1] / "lying.png"
    for name in ("heads.html", "heads.png"):
        done = run("look", "--model", stripes_model, picture, "--output", tmp_path / name)
        assert done.code == 0, done.err
        assert (tmp_path / name).stat().st_size > 1000
    forced = run("look", "--model", stripes_model, picture, "--target", "standing", "--output", tmp_path / "other.html")
    assert forced.code == 0
    assert "standing" in (tmp_path / "other.html").read_text()
    wrong = run("look", "--model", stripes_model, picture, "--target", "sitting", "--output", tmp_path / "no.html")
    assert (wrong.code, "no label 'sitting'" in wrong.err) == (2, True)
    words = run("look", "--model", stripes_model, picture, "--between", "a", "b")
    assert (words.code, "does not read text" in words.err) == (2, True)
