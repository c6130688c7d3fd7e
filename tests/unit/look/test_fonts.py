"""Fonts for the titles of pictures."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import ImageFont

from headwise.errors import WorkFailed
from headwise.look.fonts import file_for


def test_a_font_that_has_every_character_is_found() -> None:
    file = file_for("gradient × input")
    assert Path(file).is_file()
    assert ImageFont.truetype(file, 12).getlength("×") > 0


def test_characters_that_no_font_has_are_named() -> None:
    with pytest.raises(WorkFailed, match="\U0010fffd"):
        file_for("cat \U0010fffd")
