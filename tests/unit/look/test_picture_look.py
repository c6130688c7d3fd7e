from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from headwise.errors import UsageError
from headwise.look.picture_look import PictureLook, look_at_picture, overlay
from headwise.models.vit import ViT
from headwise.nn import capture_attention

PIXELS = np.random.default_rng(0).integers(0, 256, (12, 12, 3), dtype=np.uint8)


def seen(**changes: Any) -> tuple[ViT, torch.Tensor, PictureLook]:
    torch.manual_seed(0)
    sizes = {
        "image_size": 12,
        "patch_size": 4,
        "model_dim": 16,
        "num_heads": 2,
        "layers": 3,
        "ff_dim": 24,
        "classes": 4,
    }
    model = ViT(**{**sizes, **changes}).eval()
    inputs = torch.from_numpy(PIXELS.transpose(2, 0, 1)[None] / 127.5 - 1).float()
    return model, inputs, look_at_picture(model, PIXELS, inputs, 2, "<cat>")


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_maps_are_the_attention_that_the_network_used(pooling: str) -> None:
    model, inputs, look = seen(pooling=pooling)
    with torch.no_grad(), capture_attention(model) as captured:
        model.hidden(inputs)
    last = captured["encoder.layers.2.self_attention"][0][0, 1].numpy()  # head 2 of the last layer
    expected = last[0, 1:] if pooling == "cls" else last.mean(axis=0)
    assert look.maps.shape == (3, 2, 3, 3)
    np.testing.assert_allclose(look.maps[2, 1].flatten(), expected, atol=1e-6)


def test_rollout_multiplies_the_layers_with_half_of_the_residual_path() -> None:
    _, _, look = seen()
    flow = np.eye(10)
    for layer in range(3):
        flow = (look.attention[layer].mean(axis=0) + np.eye(10)) / 2 @ flow
    np.testing.assert_allclose(flow.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(look.rollout.flatten(), flow[0, 1:], atol=1e-6)


def test_saliency_is_what_a_small_change_of_a_pixel_does_to_the_log_odds() -> None:
    model, inputs, look = seen()
    model, inputs = model.double(), inputs.double()

    def odds(pixels: torch.Tensor) -> torch.Tensor:
        chance = model(pixels).softmax(dim=-1)[0, 2]
        return (chance / (1 - chance)).log()

    with torch.no_grad():
        for row, column in ((0, 0), (5, 7), (11, 3)):
            brighter = inputs.clone()
            brighter[:, :, row, column] *= 1 + 1e-5
            change = (odds(brighter) - odds(inputs)) / 1e-5
            assert look.saliency[row, column] == pytest.approx(float(change), rel=1e-2, abs=1e-5)


def test_a_drawing_for_every_head_over_the_picture() -> None:
    _, _, look = seen()
    rows = look.drawings()
    assert [[title for title, _ in row] for row in rows] == [
        ["<cat>", "attention rollout", "gradient × input"],
        *([f"layer {layer}, head {head}" for head in (1, 2)] for layer in (1, 2, 3)),
    ]
    assert np.array_equal(rows[0][0][1], PIXELS)
    assert all(pixels.shape == (12, 12, 3) for row in rows for _, pixels in row)
    assert [title for title, _ in look.drawings("saliency")[0]] == ["<cat>", "gradient × input"]
    assert [[title for title, _ in row] for row in look.drawings("encoder", 2, 1)] == [["<cat>"], ["layer 2, head 1"]]


def test_colours_lie_over_the_picture_where_values_are_large() -> None:
    base = np.full((4, 4, 3), 100, dtype=np.uint8)
    values = np.zeros((4, 4), dtype=np.float32)
    values[1, 2] = 3.0
    drawn = overlay(base, values)
    assert drawn[1, 2, 0] > 150 > drawn[1, 2, 1]
    assert drawn[3, 0].tolist() == [100, 100, 100]
    values[0, 0] = -3.0
    signed = overlay(base, values, signed=True)
    assert signed[0, 0, 0] > 150 > signed[0, 0, 2], "what lowers is orange"
    assert signed[1, 2, 2] > 150 > signed[1, 2, 0], "what raises is blue"
    assert overlay(base, np.zeros((2, 2), dtype=np.float32)).tolist() == base.tolist()


def test_pages_and_pictures_are_written_whole(tmp_path: Path) -> None:
    _, _, look = seen()
    look.save(tmp_path / "heads.html")
    text = (tmp_path / "heads.html").read_text()
    found = re.search(r'id="data">(.*?)</script>', text)
    assert found is not None
    maps = json.loads(found[1])["maps"]
    assert [one["kind"] for one in maps] == ["rollout", "saliency", *["head"] * 6]
    first = np.frombuffer(base64.b64decode(maps[2]["values"]), dtype=np.uint8).reshape(look.grid)
    assert np.unravel_index(first.argmax(), look.grid) == np.unravel_index(look.maps[0, 0].argmax(), look.grid)
    assert "&lt;cat&gt;" in text
    assert "<cat>" not in text
    assert "default-src 'none'" in text
    assert "http" not in text.replace("http-equiv", "")
    look.save(tmp_path / "heads.html", layer=1)
    assert (tmp_path / "heads.html").read_text().count('"kind":"head"') == 2
    look.save(tmp_path / "heads.png")
    with Image.open(tmp_path / "heads.png") as sheet:
        assert sheet.width > 3 * 168
        assert sheet.height > 4 * 168


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"what": "cross"}, "--what cross is not for pictures"),
        ({"layer": 4}, "there is no layer 4"),
        ({"head": 0}, "there is no head 0"),
    ],
)
def test_what_is_not_there_is_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    _, _, look = seen()
    with pytest.raises(UsageError, match=message):
        look.save(tmp_path / "heads.html", **options)
    with pytest.raises(UsageError, match=r"\.png or \.html"):
        look.save(tmp_path / "heads.svg")
    with pytest.raises(UsageError, match="no alignment"):
        look.alignment()
    assert list(tmp_path.iterdir()) == []
