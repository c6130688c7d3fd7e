"""Our ViT computes what `transformers` computes with the same weights: any size of picture, states, logits, gradients.

Weights are taken from saved files: in memory `transformers` has other names than the files on the Hub.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fixtures_published import publish_vit
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor

import headwise as hw
from headwise.bundle.assets import Assets
from headwise.bundle.directory import open_bundle
from headwise.bundle.weights import load_model
from headwise.image.preprocessing import Preprocessing
from headwise.workflows.export import export_model
from headwise.workflows.import_model import import_model

RENAMED = (
    (r"embeddings\.cls_token", "class_token"),
    (r"embeddings\.position_embeddings", "positions.weight"),
    (r"embeddings\.patch_embeddings\.projection", "stem"),
    (r"encoder\.layer\.", "encoder.layers."),
    (r"layernorm_before", "self_residual.norm"),
    (r"layernorm_after", "feed_residual.norm"),
    (r"attention\.output\.dense", "self_attention.output"),
    (r"intermediate\.dense", "feed_forward.inner"),
    (r"(\d)\.output\.dense", r"\1.feed_forward.outer"),
    (r"^layernorm\.", "encoder.norm."),
    (r"classifier", "output"),
)


def converted(file: Path, shapes: dict[str, torch.Size]) -> dict[str, Tensor]:
    """The weights of a file on the Hub under our names."""
    ours: dict[str, Tensor] = {}
    thirds: dict[str, dict[str, Tensor]] = {}
    for hub_name, weight in load_file(file).items():
        name = hub_name.removeprefix("vit.")
        for pattern, replacement in RENAMED:
            name = re.sub(pattern, replacement, name)
        if found := re.fullmatch(r"(.*)\.attention\.attention\.(query|key|value)\.(weight|bias)", name):
            place = f"{found[1]}.self_attention.query_key_value.{found[3]}"
            thirds.setdefault(place, {})[found[2]] = weight
        elif not name.startswith("pooler."):
            ours[name] = weight
    ours |= {place: torch.cat([parts[name] for name in ("query", "key", "value")]) for place, parts in thirds.items()}
    return {name: weight.reshape(shapes[name]) for name, weight in ours.items()}


def pair(folder: Path, classifies: bool = True, **changes: Any) -> tuple[Any, hw.ViT]:
    """A random model of `transformers`, and ours with the weights of its file."""
    theirs = publish_vit(folder, classifies=classifies, **changes)
    config = theirs.config
    ours = hw.ViT(
        image_size=config.image_size, patch_size=config.patch_size, channels=config.num_channels,
        classes=config.num_labels if classifies else 0, model_dim=config.hidden_size, layers=config.num_hidden_layers,
        num_heads=config.num_attention_heads, ff_dim=config.intermediate_size, activation=config.hidden_act,
        norm_epsilon=config.layer_norm_eps,
    )  # fmt: skip
    shapes = {name: weight.shape for name, weight in ours.state_dict().items()}
    ours.load_state_dict(converted(folder / "model.safetensors", shapes))
    return theirs, ours.eval()


@pytest.mark.parametrize(
    "changes",
    [{}, {"num_channels": 1, "num_labels": 2}, {"layer_norm_eps": 1e-6, "hidden_act": "relu"}, {"patch_size": 4}],
    ids=lambda changes: ",".join(changes) or "plain",
)
def test_logits_and_states_are_those_of_hugging_face(tmp_path: Path, changes: dict[str, Any]) -> None:
    theirs, ours = pair(tmp_path, **changes)
    pixels = torch.randn(3, theirs.config.num_channels, 32, 32)
    with torch.no_grad():
        expected, found = theirs(pixels, output_hidden_states=True), ours(pixels)
        torch.testing.assert_close(found, expected.logits, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(ours.hidden(pixels), theirs.vit(pixels)[0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("size", [(48, 48), (24, 24), (16, 40), (64, 32), (37, 45), (32, 39), (8, 8)])
def test_pictures_of_other_sizes_get_the_same_interpolated_positions(tmp_path: Path, size: tuple[int, int]) -> None:
    theirs, ours = pair(tmp_path)
    pixels = torch.randn(2, 3, *size)
    with torch.no_grad():
        expected = theirs(pixels, interpolate_pos_encoding=True).logits
        torch.testing.assert_close(ours(pixels), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("size", [(32, 32), (40, 24)])
def test_a_model_without_classes_has_the_states_of_vitmodel(tmp_path: Path, size: tuple[int, int]) -> None:
    theirs, ours = pair(tmp_path, classifies=False)
    pixels = torch.randn(2, 3, *size)
    with torch.no_grad():
        expected = theirs(pixels, interpolate_pos_encoding=True)
        torch.testing.assert_close(ours.hidden(pixels), expected.last_hidden_state, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(ours.states(pixels), expected.last_hidden_state[:, 0], atol=1e-5, rtol=1e-5)
        # The pooler, which classification does not use, is a layer on our state of [CLS].
        pooled = torch.tanh(theirs.pooler.dense(ours.states(pixels)))
        torch.testing.assert_close(pooled, expected.pooler_output, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("size", [(32, 32), (48, 24)])
def test_gradients_are_those_of_hugging_face(tmp_path: Path, size: tuple[int, int]) -> None:
    theirs, ours = pair(tmp_path / "model")
    pixels, labels = torch.randn(4, 3, *size), torch.tensor([0, 3, 6, 3])
    theirs(pixels, labels=labels, interpolate_pos_encoding=True).loss.backward()
    total, _ = ours.output.loss(ours.states(pixels), labels)
    (total / len(labels)).backward()
    # The gradients go the way of the weights: into a file with the Hub's names, and from there to ours.
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.copy_(parameter.grad)
    theirs.save_pretrained(tmp_path / "gradients")
    expected = converted(
        tmp_path / "gradients/model.safetensors", {name: p.shape for name, p in ours.named_parameters()}
    )
    assert expected.keys() == {name for name, _ in ours.named_parameters()}
    for name, parameter in ours.named_parameters():
        assert parameter.grad is not None
        torch.testing.assert_close(parameter.grad, expected[name], atol=1e-5, rtol=1e-5, msg=name)


def test_dropout_is_where_hugging_face_has_it(tmp_path: Path) -> None:
    """Mean and variance over many draws agree; without dropout inside of the feed-forward, which they do not have."""
    theirs, ours = pair(tmp_path, num_hidden_layers=1, hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.3)
    same = hw.ViT(**{**ours.architecture, "dropout": 0.3, "activation_dropout": 0.0})
    same.load_state_dict(ours.state_dict())
    pixels = torch.randn(1, 3, 32, 32).expand(4000, -1, -1, -1)
    with torch.no_grad():
        expected, found = theirs.train()(pixels).logits, same.train()(pixels)
    torch.testing.assert_close(found.mean(0), expected.mean(0), atol=0.05, rtol=0.0)
    torch.testing.assert_close(found.std(0), expected.std(0), atol=0.05, rtol=0.05)


@pytest.mark.parametrize("size", [(50, 30), (16, 16), (9, 40)])
def test_pixel_values_are_those_of_hugging_face(size: tuple[int, int]) -> None:
    from transformers import ViTImageProcessorPil

    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8))
    theirs = ViTImageProcessorPil(size={"height": 16, "width": 16})(picture, return_tensors="np")["pixel_values"]
    ours = Preprocessing(size=16, fit="stretch", mean=[0.5] * 3, std=[0.5] * 3)
    np.testing.assert_allclose(ours.normalised(ours.fitted(picture)[None]), theirs, atol=1e-6)


# ---- import and export


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"num_channels": 1, "num_labels": 2},
        {"hidden_act": "gelu_new", "layer_norm_eps": 1e-6, "hidden_dropout_prob": 0.1},
    ],
    ids=lambda changes: ",".join(changes) or "plain",
)
def test_an_imported_classifier_computes_the_same(tmp_path: Path, changes: dict[str, Any]) -> None:
    theirs = publish_vit(tmp_path / "hub", **changes)
    import_model(tmp_path / "hub", tmp_path / "ours")
    bundle = open_bundle(tmp_path / "ours")
    ours = load_model(bundle)
    assert bundle.task_name == "classify"
    assert Assets.load(tmp_path / "ours").labels == tuple(theirs.config.id2label.values())
    for size in ((32, 32), (24, 40)):
        pixels = torch.randn(3, theirs.config.num_channels, *size)
        with torch.no_grad():
            expected = theirs(pixels, interpolate_pos_encoding=True).logits
            torch.testing.assert_close(ours(pixels), expected, atol=1e-5, rtol=1e-5)


def test_a_model_without_a_head_is_imported_without_its_pooler(tmp_path: Path) -> None:
    theirs = publish_vit(tmp_path / "hub", classifies=False)
    import_model(tmp_path / "hub", tmp_path / "ours")
    bundle = open_bundle(tmp_path / "ours")
    ours = load_model(bundle)
    assert bundle.architecture["classes"] == 0
    pixels = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        expected = theirs(pixels).last_hidden_state
        torch.testing.assert_close(ours.hidden(pixels), expected, atol=1e-5, rtol=1e-5)
    export_model(tmp_path / "ours", tmp_path / "back", to="huggingface")
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("hub", "back"))
    assert before.keys() - after.keys() == {"pooler.dense.weight", "pooler.dense.bias"}
    assert all(torch.equal(before[name], after[name]) for name in after)


def test_an_imported_model_is_exported_as_it_was_published(tmp_path: Path) -> None:
    from transformers import AutoImageProcessor, AutoModelForImageClassification

    names = {0: "cat", 1: "crane", 2: "crane"}
    theirs = publish_vit(tmp_path / "hub", num_labels=3, id2label=names, label2id={"cat": 0, "crane": 2})
    import_model(tmp_path / "hub", tmp_path / "ours")
    assert Assets.load(tmp_path / "ours").labels == ("cat", "crane", "crane (2)")
    export_model(tmp_path / "ours", tmp_path / "back", to="huggingface")
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("hub", "back"))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    again = AutoModelForImageClassification.from_pretrained(tmp_path / "back").eval()
    pixels = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(again(pixels).logits, theirs(pixels).logits)
    assert again.config.id2label[2] == "crane (2)"
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (50, 30, 3), dtype=np.uint8))
    one, other = (
        AutoImageProcessor.from_pretrained(tmp_path / name, use_fast=False)(picture, return_tensors="np")
        for name in ("hub", "back")
    )
    np.testing.assert_array_equal(one["pixel_values"], other["pixel_values"])
    import_model(tmp_path / "back", tmp_path / "again")
    for name in ("model.safetensors", "preprocessing.json", "labels.json"):
        assert (tmp_path / "ours" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
