from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import headwise
from headwise.look.capture import Look, Steps
from headwise.look.coloured_text import ColouredText
from headwise.look.page import page
from headwise.look.token_labels import Reading, Token


def test_words_have_the_sum_of_their_pieces_and_the_text_its_own_spaces() -> None:
    pieces = ["", " the", " anim", "al", " didn", " '", " t", " (", " really", " )", " sleep", " .", ""]
    tokens = [Token(piece.strip(), piece, special=not piece) for piece in pieces]
    groups = [[0], [1], [2, 3], *([place] for place in range(4, 13))]
    said = Reading([Token("tired", "tired")], [[0]], "tired")
    saliency = np.arange(13, dtype=np.float32)[None]
    steps = Steps(np.array([0.75], dtype=np.float32), [[]])
    found = ColouredText.of(Look(Reading(tokens, groups), said, said, {}, None, steps, lambda: saliency, labels=True))
    assert "".join(word for word, _ in found.words) == "the animal didn't (really) sleep."
    assert found.words[1] == (" animal", 5.0)
    assert (found.label, found.chance, found.limit) == ("tired", 0.75, 11.0)


def test_the_page_of_a_classifier_has_its_text_in_colours(classifier_model: Path) -> None:
    seen = headwise.load(classifier_model).look("dog cat red")
    data = re.search(r'id="data">(.*?)</script>', page(seen, seen.panels(), "attention"))
    assert data is not None
    shown = json.loads(data[1])["coloured"]
    assert (shown["label"], "".join(word for word, _ in shown["words"])) == ("animals", "dog cat red")
    assert [value for _, value in shown["words"]] == pytest.approx(seen.saliency[0, 1:4], abs=1e-3)
    values = dict(shown["words"])
    assert values["dog"] > 0 > values[" red"]


def test_a_model_without_labels_has_no_colours(filler_model: Path) -> None:
    seen = headwise.load(filler_model).look("dog [MASK]")
    assert '"coloured":null' in page(seen, seen.panels(), "attention")


def test_the_picture_breaks_lines_and_keeps_the_words_as_text(tmp_path: Path) -> None:
    words = [(f" word{number}" if number else "word0", float(number - 20)) for number in range(40)]
    ColouredText("a label", 0.9, words).picture(tmp_path / "words.svg")
    picture = (tmp_path / "words.svg").read_text(encoding="utf-8")
    assert all(f">word{number}<" in picture for number in range(40))
    assert "a label" in picture
    heights = set(re.findall(r"<text [^>]* y=\"([\d.]+)\"", picture))
    assert len(heights) >= 4
