"""Fonts for the titles of pictures."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import ImageFont

from headwise.errors import WorkFailed
from headwise.look.fonts import file_for
from headwise.look.panels import Panel
from headwise.look.pictures import panels_picture


def test_a_font_that_has_every_character_is_found() -> None:
    file = file_for("gradient × input")
    assert Path(file).is_file()
    assert ImageFont.truetype(file, 12).getlength("×") > 0


def test_characters_that_no_font_has_are_named() -> None:
    with pytest.raises(WorkFailed, match="\U0010fffd"):
        file_for("cat \U0010fffd")


def test_a_picture_with_chinese_words_is_drawn_without_a_word_about_fonts(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    values = np.full((1, 1, 2, 2), 0.5, np.float32)
    panel = Panel("cross", "Cross-attention", values, ["狗", "跑"], ["dog", "runs"], "target", "source")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        panels_picture([panel], tmp_path / "a.svg")
    assert "狗" in (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []
