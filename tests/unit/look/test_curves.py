from __future__ import annotations

import math
from pathlib import Path

import pytest
from PIL import Image

from headwise.errors import UsageError
from headwise.look.curves import Course, curves_picture

STEPS = [10, 20, 30]
COURSE = Course(
    "my <run>",
    training=(STEPS, [5.0, math.nan, 3.0]),
    validation=(STEPS, [5.2, 4.1, 3.3]),
    scores={"bleu": (STEPS, [1.0, 12.0, 20.0])},
    rate=(STEPS, [1e-4, 2e-4, 3e-4]),
    speed=(STEPS, [900.0, 1000.0, 1100.0]),
)


def test_a_picture_has_the_kind_that_its_name_says(tmp_path: Path) -> None:
    curves_picture([COURSE], tmp_path / "curves.png")
    with Image.open(tmp_path / "curves.png") as picture:
        assert picture.format == "PNG"
    curves_picture([COURSE, Course("another", training=(STEPS, [4.0, 3.0, 2.0]))], tmp_path / "curves.svg")
    drawn = (tmp_path / "curves.svg").read_text(encoding="utf-8")
    assert "<svg" in drawn
    assert "my &lt;run&gt;" in drawn
    assert "another" in drawn


def test_equal_courses_give_an_equal_file(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        curves_picture([COURSE], tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_another_kind_of_picture_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"must end in \.png or \.svg"):
        curves_picture([COURSE], tmp_path / "curves.gif")
