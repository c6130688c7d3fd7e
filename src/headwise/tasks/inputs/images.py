"""Pictures to classify: folders of classes, tables of paths, idx files; in use, files of pictures."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from headwise.bundle.assets import PREPROCESSING, Assets
from headwise.config.schema import Recipe
from headwise.data.cached import cached
from headwise.data.picture_report import check_pictures
from headwise.data.pictures import open_source, picture_paths
from headwise.data.pixel_store import FORMAT, PixelStore, part_of, write_pixels
from headwise.data.rows import ordered
from headwise.errors import DataError, RecipeError
from headwise.image.augmentation import Augmentation
from headwise.image.preprocessing import Preprocessing
from headwise.image.reading import UPLOADED, Pixels, decode_picture, from_pixels, read_picture
from headwise.image.sources import Source, in_order
from headwise.tasks.automatic import (
    Choice,
    DataFacts,
    before_tokenizing,
    choose,
    gentler,
    optimisation,
    optimises_itself,
)
from headwise.tasks.inputs.interface import Examples, Inputs
from headwise.tasks.interface import Examined, OnProgress, Prepared, Progress

if TYPE_CHECKING:
    from torch import Tensor

    from headwise.data.pixel_batches import PixelBatches
    from headwise.look.picture_look import PictureLook
    from headwise.models.interface import Network

PICTURES = 128  # of a batch, where the recipe does not say
KIND = "images"


@dataclass(frozen=True)
class PictureFacts(DataFacts):
    """What settings for pictures are chosen by."""

    side: int = 0  # the median of the shorter sides, in pixels


@dataclass(frozen=True)
class Fitted:
    """A picture in the model's size, and how its numbers are to be normalised."""

    pixels: Pixels
    how: Preprocessing


class ImageInputs(Inputs):
    """Pictures with a label each."""

    field = KIND
    unit = "pictures"

    # ---- training

    def check(self, recipe: Recipe) -> None:
        mixes = recipe.images.mixup or recipe.images.cutmix
        if mixes and recipe.training.class_weights != "none":
            raise RecipeError("training.class_weights cannot be combined with images.mixup or cutmix: drop one of them")
        if recipe.data.columns and len(recipe.data.columns) != 2:
            raise RecipeError(
                f"data.columns must name the columns of path and label, not {', '.join(recipe.data.columns)}"
            )

    def automatic(self, recipe: Recipe, facts: DataFacts) -> list[Choice]:
        skipped = ("tokenizer.", "model.dropout")  # there is no text, and presets have their dropout
        choices = [choice for choice in before_tokenizing(recipe, facts) if not choice.key.startswith(skipped)]
        side = getattr(facts, "side", 0)
        if recipe.model.from_ is None and side and any(choice.key == "model.preset" for choice in choices):
            choices += _sizes(side)
        chosen, _ = choose(recipe, choices)
        size = f"{facts.lines:,} {facts.unit}"
        if not optimises_itself(recipe):
            choices.append(Choice("training.optimizer", "adamw", "does not memorise"))
            choices.append(Choice("training.weight_decay", 0.05, "does not memorise"))
        width, tokens = getattr(chosen.model.settings, "model_dim", 128), PICTURES * _tokens(chosen)
        batch = f"{PICTURES} pictures of {tokens // PICTURES} patches"
        choices += gentler(optimisation(recipe, width, tokens, batch), 2.5)
        shift = max(1, (getattr(chosen.model.settings, "image_size", 28)) // 14)
        return [*choices, Choice("images.shift", shift, f"{size}: shifted copies are new pictures")]

    def examine(self, recipe: Recipe, base: Path, on_progress: OnProgress | None = None) -> Examined:
        self.check(recipe)
        held_out = {
            name: _source(recipe, base, texts.images)
            for name, texts in (("validation", recipe.data.validation), ("test", recipe.data.test))
            if texts.images
        }
        found = check_pictures(_source(recipe, base, recipe.data.images), held_out, on_progress)
        facts = PictureFacts(found.report.counts.kept, 0, found.report.unit, found.side)
        return Examined(found.report, facts)

    def prepare(
        self, recipe: Recipe, base: Path, cache: Path, *, start: Assets | None = None, progress: Progress | None = None
    ) -> Prepared:
        tell = progress or (lambda stage, done, total: None)
        self.check(recipe)
        training = _source(recipe, base, recipe.data.images)
        if training.empty_classes:
            raise DataError("has no pictures; add some, or remove the folder", file=training.empty_classes[0])
        labels, how = _labels(training, start), _preprocessing(recipe, training, start)
        prints = {"training": training.fingerprint()}
        store = _store(cache, training, prints["training"], labels, how, lambda n: tell("pictures", n, len(training)))
        validation = None
        if recipe.data.validation.images:
            held_out = _source(recipe, base, recipe.data.validation.images)
            prints["validation"] = held_out.fingerprint()
            validation = _store(
                cache, held_out, prints["validation"], labels, how,
                lambda n: tell("validation pictures", n, len(held_out)),
            )  # fmt: skip
        elif recipe.data.split:
            held = held_out_rows(store, recipe.data.split)
            validation = part_of(store, "validation", np.flatnonzero(held))
            store = part_of(store, "training", np.flatnonzero(~held))
        if not len(store) or (validation is not None and not len(validation)):
            raise DataError("no picture is left after those that cannot be read", file=training.files[0])
        if start is None:
            mean, std = store.mean_and_std()
            how = how.model_copy(update={"mean": mean, "std": std})
        return Prepared(Assets(labels=labels, preprocessing=how.model_dump(mode="json")), store, validation, prints)

    def open_store(self, directory: Path) -> PixelStore:
        return PixelStore(directory)

    def sizes(self, assets: Assets) -> dict[str, Any]:
        return {"channels": _how(assets).channels}

    def batches(
        self, store: PixelStore, recipe: Recipe, assets: Assets, max_length: int | None, *,
        rank: int = 0, world: int = 1, shuffle: bool = True,
    ) -> PixelBatches:  # fmt: skip
        from headwise.data.pixel_batches import PixelBatches

        settings, images = recipe.training, recipe.images
        augmentation = Augmentation(
            images.flip, images.shift, images.operations, images.strength, images.erase, images.mixup, images.cutmix
        )
        pictures = max(1, settings.batch_tokens // (max_length or 1))
        return PixelBatches(
            store, pictures, _how(assets), len(assets.labels), settings.seed, augmentation=augmentation,
            shuffle=shuffle, rank=rank, world=world,
        )  # fmt: skip

    def label_counts(self, store: PixelStore, classes: int) -> NDArray[np.int64]:
        return np.bincount(store.labels(), minlength=classes)

    # ---- using a model

    def opens(self, assets: Assets) -> bool:
        return assets.preprocessing.get("kind") == KIND

    def reads(self, assets: Assets) -> str:
        return "image"

    def example(self, assets: Assets) -> Any:
        how = _how(assets)
        return np.zeros((how.size, how.size, how.channels), dtype=np.uint8)

    def decode(self, content: bytes, most_pixels: int) -> Any:
        return decode_picture(content, "the picture", most_pixels=most_pixels, formats=UPLOADED)

    def items(self, given: Sequence[str], assets: Assets) -> list[Any]:
        return list(given)

    def examples(self, files: Sequence[str], assets: Assets, columns: Sequence[str] = ()) -> Examples:
        """Pictures in files are read later, a few at a time; those of idx files are small and come at once."""
        known, found = set(assets.labels), Examples([], [], [])
        for item, label, place in open_source(picture_paths(files), columns, assets.labels).items():
            if label not in known:
                raise DataError(f"the model has no label '{label}'", file=place)
            found.items.append(item)
            found.labels.append(label)
            found.places.append(place)
        return found

    def encode(self, items: Sequence[Any], assets: Assets, longest: int | None) -> list[Any]:
        """Names of files, pictures, or arrays of pixels (height, width, 1 or 3)."""
        how = _how(assets)
        return list(in_order(lambda item: _fitted(item, how), items))

    def tensors(self, several: Sequence[Fitted]) -> tuple[Tensor, ...]:
        import torch

        return (torch.from_numpy(several[0].how.normalised(np.stack([one.pixels for one in several]))),)

    def look(
        self, network: Network, assets: Assets, item: Any, answer: int, longest: int | None, chance: float
    ) -> PictureLook:
        from headwise.look.picture_look import look_at_picture

        encoded = self.encode([item], assets, longest)
        (inputs,) = self.tensors(encoded)
        return look_at_picture(network, encoded[0].pixels, inputs, answer, assets.labels[answer])


INPUTS = ImageInputs()


def _how(assets: Assets) -> Preprocessing:
    return Preprocessing.of(assets.preprocessing, PREPROCESSING)


def _source(recipe: Recipe, base: Path, paths: Sequence[str]) -> Source:
    return open_source(picture_paths(paths, base), recipe.data.columns, recipe.data.labels)


def _fitted(item: Any, how: Preprocessing) -> Fitted:
    if isinstance(item, np.ndarray):
        pixels = item if item.ndim == 3 else item[..., None]
        if item.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] not in (1, 3):
            raise DataError(f"pixels must be 8-bit (height, width, 1 or 3), not {item.dtype} {item.shape}")
        return Fitted(how.fitted(from_pixels(np.ascontiguousarray(pixels))), how)
    return Fitted(how.fitted(item if isinstance(item, Image.Image) else read_picture(item)), how)


# ---- preparing


def _labels(source: Source, start: Assets | None) -> tuple[str, ...]:
    """The classes of the training pictures; those of the start model, in its order, where it knows them all."""
    found = ordered(source.labels())
    if start is not None and start.labels and set(found) <= set(start.labels):
        return start.labels
    if len(found) < 2:
        raise DataError(f"has only the class '{found[0]}': a classifier needs two or more", file=source.files[0])
    return found


def _preprocessing(recipe: Recipe, source: Source, start: Assets | None) -> Preprocessing:
    """As the model that is fine-tuned reads pictures, or as the recipe says; mean and deviation come later."""
    images = recipe.images
    if start is not None and start.preprocessing:
        how = _how(start)
        return how if images.size is None else how.model_copy(update={"size": images.size, "resize": None})
    channels = {"auto": 1 if source.is_grey() else 3, "grey": 1, "colour": 3}[images.channels]
    size = images.size or getattr(recipe.model.settings, "image_size", 28)
    return Preprocessing.of(
        {"size": size, "channels": channels, "fit": images.fit, "mean": [0.5] * channels, "std": [0.5] * channels},
        "[images]",
    )


def _store(
    cache: Path, source: Source, content: str, labels: Sequence[str], how: Preprocessing, tell: Callable[[int], None]
) -> PixelStore:
    codes = {label: number for number, label in enumerate(labels)}
    for label, file in zip(source.labels(), source.places(), strict=True):
        if label not in codes:
            raise DataError(f"the class '{label}' does not occur in the training pictures", file=file)
    shaping = how.model_dump(mode="json", exclude={"mean", "std"})
    key = hashlib.sha256(json.dumps([FORMAT, content, shaping, list(labels)]).encode()).hexdigest()[:32]

    def write(directory: Path) -> None:
        shape = (how.size, how.size, how.channels)
        write_pixels(directory, source.pictures(how.fitted), codes, shape, {"content": content, "how": shaping}, tell)

    store = cached(cache, f"{KIND}-{key}", write, PixelStore, "pixel store")
    tell(len(source))
    return store


def held_out_rows(store: PixelStore, share: float) -> NDArray[np.bool_]:
    """Which pictures to hold out: of each class the share with the smallest hashes, so that copies stay together.

    A class with two pictures or more has one on each side at least.
    """
    hashes, labels = store.picture_hashes(), store.labels()
    held: set[int] = set()
    for label in np.unique(labels):
        own = np.unique(hashes[labels == label])
        held.update(own[: min(max(round(share * len(own)), 1), len(own) - 1)].tolist())
    return np.array([number in held for number in hashes.tolist()], dtype=bool)


# ---- automatic settings


def _sizes(side: int) -> list[Choice]:
    """Small pictures as they are, in patches of 4; larger ones at 64 pixels in patches of 8, which a CPU can train."""
    if side <= 48:
        return [Choice("model.image_size", max(8, -(-side // 4) * 4), f"pictures of {side} pixels")]
    reason = f"pictures of {side} pixels, at a size that trains on a CPU"
    return [Choice("model.image_size", 64, reason), Choice("model.patch_size", 8, reason)]


def _tokens(recipe: Recipe) -> int:
    """Patches of a picture."""
    settings = recipe.model.settings
    return max(1, (getattr(settings, "image_size", 28) // getattr(settings, "patch_size", 4)) ** 2)
