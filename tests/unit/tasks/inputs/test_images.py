from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from small_pictures import SMALL_VIT, stripes, write_folder, write_idx

from headwise.bundle.assets import Assets
from headwise.config.recipe import build_recipe
from headwise.config.schema import Recipe
from headwise.data.cursor import Cursor
from headwise.data.pixel_store import PixelStore
from headwise.errors import DataError, ModelError, RecipeError
from headwise.image.preprocessing import Preprocessing
from headwise.tasks.automatic import choose
from headwise.tasks.inputs import all_inputs, inputs_of_model, inputs_of_store
from headwise.tasks.inputs.images import INPUTS, PictureFacts, held_out_rows
from headwise.tasks.interface import Prepared


def recipe(**changes: dict[str, Any]) -> Recipe:
    values: dict[str, Any] = {name: dict(part) if isinstance(part, dict) else part for name, part in SMALL_VIT.items()}
    for name, change in changes.items():
        values[name] = {**values[name], **change}
    return build_recipe(values)


def folder_recipe(**changes: dict[str, Any]) -> Recipe:
    return recipe(**{**changes, "data": {"images": "pictures", "labels": [], **changes.get("data", {})}})


def prepared(folder: Path, made: Recipe, start: Assets | None = None) -> Prepared:
    return INPUTS.prepare(made, folder, folder / "cache", start=start)


# ---- preparing


def test_idx_files_become_stores_with_named_classes(tmp_path: Path) -> None:
    write_idx(tmp_path, *stripes(50))
    told: list[tuple[str, int, int | None]] = []
    made = INPUTS.prepare(recipe(), tmp_path, tmp_path / "cache", progress=lambda *step: told.append(step))
    assert made.assets.labels == ("lying", "standing")
    assert len(made.training) + len(made.validation) == 50  # type: ignore[arg-type]
    assert len(made.validation) == 10  # type: ignore[arg-type]
    assert told[-1] == ("pictures", 50, 50)
    how = Preprocessing.of(made.assets.preprocessing, "")
    assert (how.size, how.channels) == (8, 1)
    pixels = made.training.pixels(np.arange(40)) / 255  # type: ignore[attr-defined]
    assert how.mean == pytest.approx([pixels.mean()], abs=1e-4)
    assert how.std == pytest.approx([pixels.std()], abs=1e-4)
    again = prepared(tmp_path, recipe())
    assert (again.training.directory, again.fingerprints) == (made.training.directory, made.fingerprints)


def test_folders_are_split_by_class_and_copies_stay_together(tmp_path: Path) -> None:
    write_folder(tmp_path / "pictures", {"cat": 20, "dog": 10})
    for number in range(5):  # copies of one picture
        (tmp_path / f"pictures/cat/copy{number}.png").write_bytes((tmp_path / "pictures/cat/0.png").read_bytes())
    made = prepared(tmp_path, folder_recipe())
    assert isinstance(made.validation, PixelStore)
    assert isinstance(made.training, PixelStore)
    assert not set(made.validation.picture_hashes().tolist()) & set(made.training.picture_hashes().tolist())
    assert set(made.validation.labels().tolist()) == set(made.training.labels().tolist()) == {0, 1}
    assert inputs_of_store(made.validation.directory) is INPUTS
    held = held_out_rows(made.training, 0.5)
    assert 0 < held.sum() < len(held)


def test_validation_pictures_of_their_own_are_all_used(tmp_path: Path) -> None:
    write_folder(tmp_path / "pictures", {"cat": 4, "dog": 4})
    write_folder(tmp_path / "held", {"cat": 1, "dog": 2}, seed=3)
    made = prepared(tmp_path, folder_recipe(data={"validation": {"images": "held"}, "split": 0.0}))
    assert len(made.training) == 8
    assert len(made.validation) == 3  # type: ignore[arg-type]
    assert set(made.fingerprints) == {"training", "validation"}


@pytest.mark.parametrize(
    ("counts", "held", "message"),
    [
        ({"cat": 3, "dog": 0}, {"cat": 1}, r"dog: has no pictures; add some, or remove the folder"),
        ({"cat": 3}, {"cat": 1}, "has only the class 'cat'"),
        ({"cat": 3, "dog": 3}, {"bird": 1}, r"bird/0.png: the class 'bird' does not occur"),
    ],
)
def test_classes_that_cannot_be_learned_are_refused(
    tmp_path: Path, counts: dict[str, int], held: dict[str, int], message: str
) -> None:
    write_folder(tmp_path / "pictures", counts)
    write_folder(tmp_path / "held", held)
    with pytest.raises(DataError, match=message):
        prepared(tmp_path, folder_recipe(data={"validation": {"images": "held"}}))


def test_unreadable_pictures_are_left_out_and_counted(tmp_path: Path) -> None:
    write_folder(tmp_path / "pictures", {"cat": 4, "dog": 4})
    (tmp_path / "pictures/dog/2.png").write_bytes(b"text")
    made = prepared(tmp_path, folder_recipe(data={"split": 0.0}))
    assert isinstance(made.training, PixelStore)
    assert len(made.training) == 7
    assert made.training.counts.dropped == {"not-a-picture": 1}
    for file in (tmp_path / "pictures").rglob("*.png"):
        file.write_bytes(b"text")
    with pytest.raises(DataError, match="no picture is left"):
        prepared(tmp_path, folder_recipe(data={"split": 0.0}))


@pytest.mark.parametrize(("told", "channels"), [("auto", 3), ("grey", 1), ("colour", 3)])
def test_colours_are_those_of_the_pictures_unless_told(tmp_path: Path, told: str, channels: int) -> None:
    write_folder(tmp_path / "pictures", {"cat": 3, "dog": 3})
    made = prepared(tmp_path, folder_recipe(images={"channels": told}))
    assert INPUTS.sizes(made.assets) == {"channels": channels}


def test_fine_tuning_reads_pictures_as_the_start_model_does(tmp_path: Path) -> None:
    write_folder(tmp_path / "pictures", {"cat": 4, "dog": 4})
    how = Preprocessing(size=6, channels=1, fit="stretch", mean=[0.3], std=[0.7])
    start = Assets(labels=("dog", "cat", "bird"), preprocessing=how.model_dump(mode="json"))
    made = prepared(tmp_path, folder_recipe(), start)
    assert made.assets.labels == ("dog", "cat", "bird")
    assert Preprocessing.of(made.assets.preprocessing, "") == how
    larger = prepared(tmp_path, folder_recipe(images={"size": 10}), start)
    assert Preprocessing.of(larger.assets.preprocessing, "") == how.model_copy(update={"size": 10})
    fresh = prepared(tmp_path, folder_recipe(), Assets(labels=("x",), preprocessing=how.model_dump(mode="json")))
    assert fresh.assets.labels == ("cat", "dog")


# ---- batches and settings


def test_batches_have_as_many_pictures_as_tokens_allow(tmp_path: Path) -> None:
    write_idx(tmp_path, *stripes(50))
    made = prepared(tmp_path, recipe(images={"mixup": 0.2}))
    training = INPUTS.batches(made.training, recipe(images={"mixup": 0.2}), made.assets, 16)
    assert training.pictures == 320 // 16
    batch = training.make(Cursor(0, 0))
    assert batch.inputs[0].shape == (20, 1, 8, 8)
    assert batch.targets.shape == (20, 2)
    validation = INPUTS.batches(made.validation, recipe(images={"mixup": 0.2}), made.assets, 16, shuffle=False)
    assert validation.make(Cursor(0, 0)).targets.dtype == torch.int64
    assert INPUTS.label_counts(made.training, 2).sum() == 40


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"images": {"mixup": 0.2}, "training": {"class_weights": "balanced"}}, "class_weights cannot be combined"),
        ({"data": {"columns": ["path"]}}, "must name the columns of path and label"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        INPUTS.check(recipe(**changes))


@pytest.mark.parametrize(("side", "size", "patch", "tokens"), [(28, 28, 4, 49), (30, 32, 4, 64), (480, 64, 8, 64)])
def test_sizes_are_chosen_by_the_pictures(side: int, size: int, patch: int, tokens: int) -> None:
    given = build_recipe({"data": {"images": "pictures"}, "model": {"family": "vit"}, "task": "classify"})
    choices = INPUTS.automatic(given, PictureFacts(5000, 0, "pictures", side))
    chosen, _ = choose(given, choices)
    settings = chosen.model.settings
    assert (settings.image_size, settings.patch_size) == (size, patch)  # type: ignore[attr-defined]
    assert chosen.training.batch_tokens == 128 * tokens
    assert chosen.images.shift > 0
    assert not any(choice.key.startswith("tokenizer") for choice in choices)


def test_what_the_recipe_says_is_kept() -> None:
    choices = INPUTS.automatic(recipe(), PictureFacts(5000, 0, "pictures", 100))
    chosen, taken = choose(recipe(), choices)
    assert chosen.model.settings == recipe().model.settings
    assert chosen.training.batch_tokens == 320
    assert not {"model.image_size", "images.shift"} & {choice.key for choice in taken}


def test_examining_tells_size_and_findings(tmp_path: Path) -> None:
    write_folder(tmp_path / "pictures", {"cat": 6, "dog": 6}, size=20)
    write_folder(tmp_path / "held", {"bird": 2})
    found = INPUTS.examine(folder_recipe(data={"validation": {"images": "held"}}), tmp_path)
    assert isinstance(found.facts, PictureFacts)
    assert (found.facts.lines, found.facts.side, found.facts.unit) == (12, 20, "pictures")
    assert [finding.name for finding in found.report.findings] == ["validation-classes"]


# ---- in use

HOW = Preprocessing(size=8, mean=[0.5] * 3, std=[0.25] * 3)
ASSETS = Assets(labels=("cat", "dog"), preprocessing=HOW.model_dump(mode="json"))


def test_a_model_of_pictures_is_known_by_its_preprocessing() -> None:
    assert all_inputs()["images"] is INPUTS
    assert inputs_of_model(ASSETS) is INPUTS
    with pytest.raises(ModelError, match=r"preprocessing.json is damaged"):
        INPUTS.sizes(Assets(preprocessing={"kind": "images", "size": -1}))


def test_files_and_arrays_become_the_same_numbers(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    items = INPUTS.items([str(tmp_path / "photo.png")], ASSETS)
    (tensor,) = INPUTS.tensors(INPUTS.encode([*items, pixels, pixels[..., 0]], ASSETS, None))
    assert tensor.shape == (3, 3, 8, 8)
    assert torch.equal(tensor[0], tensor[1])
    assert torch.equal(tensor[2, 0], tensor[2, 2])
    expected = HOW.normalised(HOW.fitted(Image.fromarray(pixels))[None])
    np.testing.assert_array_equal(tensor[:1].numpy(), expected)


@pytest.mark.parametrize(
    "item", [np.zeros((4, 4, 3), np.float32), np.zeros((4, 4, 2), np.uint8), np.zeros(4, np.uint8)]
)
def test_arrays_that_are_not_pictures_are_refused(item: np.ndarray) -> None:
    with pytest.raises(DataError, match="pixels must be 8-bit"):
        INPUTS.encode([item], ASSETS, None)


def test_examples_come_with_labels_and_places(tmp_path: Path) -> None:
    write_folder(tmp_path / "pictures", {"cat": 1, "dog": 2})
    found = INPUTS.examples([str(tmp_path / "pictures")], ASSETS)
    assert found.labels == ["cat", "dog", "dog"]
    assert found.places == found.items
    images = write_idx(tmp_path, *stripes(4))
    numbered = INPUTS.examples([images, str(tmp_path / "pictures")], ASSETS)
    assert numbered.labels == ["cat", "dog", "cat", "dog", "cat", "dog", "dog"]
    assert numbered.places[1] == f"{images}:2"
    write_folder(tmp_path / "pictures", {"bird": 1})
    with pytest.raises(DataError, match=r"bird/0.png: the model has no label 'bird'"):
        INPUTS.examples([str(tmp_path / "pictures")], ASSETS)
