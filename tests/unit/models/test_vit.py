from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from headwise.errors import ShapeError
from headwise.models.registry import build_model
from headwise.models.vit import ViT
from headwise.nn import capture_attention

SMALL: dict[str, Any] = {
    "image_size": 12, "patch_size": 4, "model_dim": 16, "num_heads": 2, "layers": 2, "ff_dim": 24, "channels": 2,
    "classes": 5,
}  # fmt: skip
KINDS: list[dict[str, Any]] = [
    {},
    {"pooling": "mean"},
    {"positions": "sinusoidal"},
    {"stem": "convolutions", "pooling": "mean"},
    {"stem": "convolutions", "positions": "sinusoidal"},
]


def small(**changes: Any) -> ViT:
    torch.manual_seed(0)
    return ViT(**{**SMALL, **changes})


@pytest.mark.parametrize("changes", KINDS, ids=str)
def test_every_kind_classifies_pictures_of_any_size(changes: dict[str, Any]) -> None:
    model = small(**changes).eval()
    for size in ((12, 12), (20, 8), (13, 15)):
        pixels = torch.randn(3, 2, *size)
        logits = model(pixels)
        assert logits.shape == (3, 5)
        torch.testing.assert_close(logits[1:2], model(pixels[1:2]))  # a picture's answer is its own
        rows, columns = model.grid(pixels)
        assert model.hidden(pixels).shape == (3, rows * columns + (model.class_token is not None), 16)


@pytest.mark.parametrize("changes", KINDS, ids=str)
def test_every_weight_learns(changes: dict[str, Any]) -> None:
    model = small(**changes)
    F.cross_entropy(model(torch.randn(4, 2, 12, 12)), torch.tensor([0, 1, 2, 3])).backward()
    still = [name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert still == []


def test_the_class_token_alone_is_what_the_whole_last_layer_gives() -> None:
    model = small().eval()
    pixels = torch.randn(3, 2, 12, 12)
    torch.testing.assert_close(model.states(pixels), model.hidden(pixels)[:, 0])
    one, other = (
        torch.autograd.grad(states.pow(2).sum(), list(model.encoder.parameters()))
        for states in (model.states(pixels), model.hidden(pixels)[:, 0])
    )
    for left, right in zip(one, other, strict=True):
        torch.testing.assert_close(left, right, atol=1e-5, rtol=1e-4)


def test_mean_pooling_is_the_mean_of_the_patches() -> None:
    model = small(pooling="mean").eval()
    pixels = torch.randn(2, 2, 12, 12)
    torch.testing.assert_close(model.states(pixels), model.hidden(pixels).mean(dim=1))


@pytest.mark.parametrize("changes", KINDS, ids=str)
def test_its_architecture_builds_it_again(changes: dict[str, Any]) -> None:
    model = small(**changes).eval()
    again = build_model("vit", model.architecture).eval()
    again.load_state_dict(model.state_dict())
    pixels = torch.randn(2, 2, 12, 12)
    assert torch.equal(again(pixels), model(pixels))


def test_all_heads_can_be_looked_at() -> None:
    model = small().eval()
    with capture_attention(model) as seen:
        model.hidden(torch.randn(1, 2, 12, 12))
    assert list(seen) == model.attention_names()["encoder"]
    assert [tuple(weights[0].shape) for weights in seen.values()] == [(1, 2, 10, 10)] * 2
    assert model.entrance() is model.positions


def test_without_classes_there_are_states_only() -> None:
    model = small(classes=0).eval()
    assert model.states(torch.randn(1, 2, 12, 12)).shape == (1, 16)
    assert not hasattr(model, "output")
    with pytest.raises(ShapeError, match="no classes"):
        model(torch.randn(1, 2, 12, 12))


@pytest.mark.parametrize(
    ("pixels", "message"),
    [
        (torch.zeros(2, 3, 12, 12), r"\(batch, 2, height, width\), not shape \(2, 3, 12, 12\)"),
        (torch.zeros(2, 12, 12), r"not shape \(2, 12, 12\)"),
        (torch.zeros(1, 2, 12, 12, dtype=torch.uint8), "normalised floating-point numbers, not torch.uint8"),
        (torch.zeros(1, 2, 3, 12), "3 × 12 pixels is smaller than one patch"),
        (torch.zeros(1, 1).expand(2, 4096, 4096)[None], "patches is too large; at most 16,384"),
    ],
)
def test_pixels_that_do_not_fit_are_refused(pixels: torch.Tensor, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        small()(pixels)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"patch_size": 16}, r"patch_size \(16\) is larger than image_size \(12\)"),
        ({"num_heads": 3}, "must divide model_dim"),
        ({"channels": 0}, "at least one channel"),
        ({"classes": -1}, "no less than 0 classes"),
        ({"pooling": "max"}, "pooling must be"),
        ({"stem": "convolutions", "patch_size": 6}, "2, 4, 8"),
        ({"size": 3}, "unknown setting 'size'"),
        ({"image_size": 4096, "patch_size": 1}, "4096 × 4096 patches is too large"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        small(**changes)


@pytest.mark.parametrize(("preset", "millions"), [("vit-s16", 22.05), ("vit-b16", 86.57)])  # of DeiT and of the paper
def test_presets_have_the_published_numbers_of_weights(preset: str, millions: float) -> None:
    from headwise.config.families.vit import FAMILY

    settings = FAMILY.resolve(preset, {}).model_dump()
    with torch.device("meta"):
        model = ViT(channels=3, classes=1000, **settings)
    assert sum(weight.numel() for weight in model.parameters()) / 1e6 == pytest.approx(millions, abs=0.1)
