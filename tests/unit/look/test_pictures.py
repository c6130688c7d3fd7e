from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from headwise.errors import UsageError, WorkFailed
from headwise.look import fonts, pictures
from headwise.look.alignment import Alignment
from headwise.look.capture import Look
from headwise.look.panels import Panel


def has_chinese_font() -> bool:
    return not fonts._search(["两只狗"])[1]


def latin_panel(rows: list[str], layers: int = 1, heads: int = 1) -> Panel:
    weights = np.full((layers, heads, len(rows), len(rows)), 1 / len(rows), dtype=np.float32)
    return Panel("encoder", "Encoder self-attention", weights, rows, rows, "from", "to")


def is_drawn(path: Path) -> bool:
    with Image.open(path) as image:
        return min(image.size) > 100 and len(image.convert("RGB").getcolors(1 << 24) or []) > 8


def svg_texts(path: Path) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text(encoding="utf-8"))


def test_a_png_with_chinese_is_drawn_or_names_the_fonts_to_install(seen: Look, tmp_path: Path) -> None:
    picture = tmp_path / "cross.png"
    if has_chinese_font():
        seen.save(picture, what="cross", layer=1, head=1)
        assert is_drawn(picture)
    else:
        with pytest.raises(WorkFailed, match=r"no installed font can draw .* apt install fonts-noto-cjk"):
            seen.save(picture, what="cross", layer=1, head=1)
        assert not picture.exists()


def test_without_a_font_the_error_names_the_characters_and_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    has_latin_only = frozenset(range(32, 0x250))
    monkeypatch.setattr(fonts, "_characters", lambda family: has_latin_only if family == fonts.BASE else frozenset())
    assert fonts.families_for(["dog"]) == [fonts.BASE]
    with pytest.raises(WorkFailed, match=r"draw 狗 in a PNG; .*fonts-noto-cjk.* \.svg or \.html"):
        fonts.families_for(["dog", "狗"])
    with pytest.raises(WorkFailed, match="fonts-noto-core"):
        fonts.families_for(["ไทย"])


def test_an_svg_keeps_chinese_as_text_even_without_a_font(
    seen: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fonts, "PREFERRED", ())
    monkeypatch.setattr(fonts, "_others", lambda: ())
    seen.save(tmp_path / "cross.svg", what="cross", layer=2, head=3, merge_pieces=True)
    texts = svg_texts(tmp_path / "cross.svg")
    assert {"animal", "tired", "Cross-attention, layer 2, head 3"} <= set(texts)
    assert any("狗" in text for text in texts)


@pytest.mark.parametrize("what", ["attention", "encoder", "alignment", "positions", "mask", "saliency"])
def test_every_picture_can_be_written_as_svg(seen: Look, tmp_path: Path, what: str) -> None:
    seen.save(tmp_path / "picture.svg", what=what)
    assert (tmp_path / "picture.svg").read_text(encoding="utf-8").rstrip().endswith("</svg>")
    assert [path.name for path in tmp_path.iterdir()] == ["picture.svg"]


def test_a_grid_names_all_layers_and_heads(seen: Look, tmp_path: Path) -> None:
    seen.save(tmp_path / "grid.svg", what="cross")
    assert {"layer 1", "layer 2", "layer 3", "head 1", "head 4"} <= set(svg_texts(tmp_path / "grid.svg"))
    seen.save(tmp_path / "row.svg", what="cross", layer=3)
    assert "layer 3" in svg_texts(tmp_path / "row.svg")
    assert "layer 1" not in svg_texts(tmp_path / "row.svg")


def test_the_numbers_in_the_cells_are_the_weights(tmp_path: Path) -> None:
    weights = np.array([[[[0.25, 0.75], [0.9, 0.1]]]], dtype=np.float32)
    panel = Panel("cross", "Cross-attention", weights, ["a", "b"], ["c", "d"], "written", "source")
    pictures.panels_picture([panel], tmp_path / "four.svg")
    assert {"0.25", "0.75", "0.90", "0.10"} <= set(svg_texts(tmp_path / "four.svg"))


def test_signs_of_formulas_and_markup_are_drawn_as_they_are(tmp_path: Path) -> None:
    pictures.panels_picture([latin_panel(["$x^2$", "<b>&", "$", "\\frac"])], tmp_path / "signs.svg")
    texts = svg_texts(tmp_path / "signs.svg")
    assert {"$x^2$", "&lt;b&gt;&amp;", "$", "\\frac"} <= set(texts)


def test_combining_marks_are_drawn(tmp_path: Path) -> None:
    pictures.panels_picture([latin_panel(["e\u0301", "n\u0303", "◌\u0301"])], tmp_path / "marks.png")
    assert is_drawn(tmp_path / "marks.png")


@pytest.mark.parametrize(("layers", "heads"), [(1, 1), (2, 8)])
def test_a_long_text_stays_within_what_viewers_can_open(tmp_path: Path, layers: int, heads: int) -> None:
    pictures.panels_picture([latin_panel(["token"] * 600, layers, heads)], tmp_path / "long.png")
    with Image.open(tmp_path / "long.png") as image:
        assert max(image.size) < 6000


def test_equal_input_gives_an_equal_file(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        pictures.mask_picture(5, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_positions_and_masks_can_be_drawn_without_a_model(tmp_path: Path) -> None:
    pictures.positions_picture(50, 64, tmp_path / "positions.png")
    pictures.mask_picture(8, tmp_path / "mask.png", padding=2)
    assert is_drawn(tmp_path / "positions.png")
    assert is_drawn(tmp_path / "mask.png")


def test_links_are_drawn_between_words(tmp_path: Path) -> None:
    alignment = Alignment(["the", "dog"], ["der", "Hund"], np.eye(2, dtype=np.float32), [(0, 0), (1, 1)])
    pictures.links_picture(alignment, tmp_path / "links.svg")
    assert {"the", "dog", "der", "Hund"} <= set(svg_texts(tmp_path / "links.svg"))


def test_a_picture_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"must end in \.png or \.svg"):
        pictures.mask_picture(5, tmp_path / "mask.jpg")
