"""Attention over sound: pictures and pages."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from headwise.errors import UsageError
from headwise.look.sound_look import SoundLook, look_at_sound
from headwise.models.whisper import Whisper
from headwise.text.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def look() -> SoundLook:
    torch.manual_seed(0)
    tokenizer = Tokenizer.train(["one two <three>"] * 3, kind="word", size=10)
    network = Whisper(vocab=tokenizer.size, mels=8, model_dim=16, num_heads=2, encoder_layers=1, decoder_layers=2,
                      ff_dim=16, source_positions=50, max_length=10)  # fmt: skip
    features = np.random.default_rng(0).normal(size=(100, 8)).astype(np.float32)
    return look_at_sound(
        network, tokenizer, features, 61, (2, 1), tokenizer.encode("two one <three>"), [(1, 0), (7, 0)]
    )


def test_each_written_token_has_a_row_over_the_sound_without_its_padding(look: SoundLook) -> None:
    assert look.attention.shape == (2, 2, 4, 31)
    assert list(look.labels) == ["two", "one", "<three>", "⟨end⟩"]
    assert look.text == "two one <three>"
    assert look.seconds == pytest.approx(0.62)
    assert look.spectrogram.shape == (61, 8)
    np.testing.assert_array_equal(look.weights(), look.attention[1, 0])  # of the heads that are known, one exists
    np.testing.assert_allclose(look.weights(layer=1), look.attention[0].mean(axis=0), rtol=1e-6)
    np.testing.assert_array_equal(look.weights(2, 2), look.attention[1, 1])
    assert [line.split("\t")[1] for line in look.alignment().splitlines()] == list(look.labels)


def test_a_picture_and_a_page_are_written(look: SoundLook, tmp_path: Path) -> None:
    look.save(tmp_path / "a.png")
    assert min(Image.open(tmp_path / "a.png").size) > 300
    look.save(tmp_path / "a.svg", layer=1, head=2)
    assert "layer 1, head 2" in (tmp_path / "a.svg").read_text()
    look.save(tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in page
    assert "http" not in page.replace("http-equiv", "")
    assert "<three>" not in page, "tokens are escaped"
    found = re.search(r'id="data">(.*?)</script>', page)
    assert found is not None
    data = json.loads(found[1])
    assert data["tokens"] == list(look.labels)
    assert [one["title"] for one in data["maps"]][1:] == [f"layer {n}, head {m}" for n in (1, 2) for m in (1, 2)]


def test_what_sound_does_not_have_is_said(look: SoundLook, tmp_path: Path) -> None:
    for arguments, problem in (
        (("a.png", "saliency"), "not for sound"),
        (("a.png", "cross", 3), "no layer 3"),
        (("a.png", "cross", 1, 5), "no head 5"),
        (("a.pdf",), ".png or .svg"),
    ):
        name, *rest = arguments
        with pytest.raises(UsageError, match=problem):
            look.save(tmp_path / str(name), *rest)  # type: ignore[arg-type]
