from __future__ import annotations

from pathlib import Path

import pytest

import headwise
from headwise.errors import UsageError
from headwise.tasks.span_filler import SpanFiller
from headwise.workflows.fill import open_filler


def test_a_gap_may_stand_for_several_words_and_candidates_are_ranked(span_model: Path) -> None:
    filler = headwise.load(span_model)
    assert isinstance(filler, SpanFiller)
    (filled,) = filler.fill(["dog [MASK] bird fish cow"], top=4)
    assert filled.text == "dog cat horse bird fish cow"
    (gap,) = filled.gaps
    assert gap[0].text == "cat horse"
    assert gap[0].filled == filled.text
    chances = [candidate.probability for candidate in gap]
    assert chances == sorted(chances, reverse=True)
    assert sum(chances) <= 1 + 1e-6


def test_gaps_are_written_as_masks_or_as_sentinels(span_model: Path) -> None:
    filler = open_filler(span_model)
    ways = [f"dog {gap} bird fish cow" for gap in ("[MASK]", "<mask>", "<extra_id_0>", "<extra_id_7>")]
    assert {one.text for one in filler.fill(ways, top=1)} == {"dog cat horse bird fish cow"}


def test_several_gaps_are_filled_together(span_model: Path) -> None:
    (filled,) = open_filler(span_model).fill(["[MASK] cat [MASK] fish"], top=3)
    assert len(filled.gaps) == 2
    assert filled.text == filled.gaps[0][0].filled or filled.text in {one.filled for one in filled.gaps[0]}
    assert "[MASK]" not in filled.text
    assert "<extra" not in filled.text


def test_mistakes_are_told_in_one_line(span_model: Path) -> None:
    filler = open_filler(span_model)
    with pytest.raises(UsageError, match="there is no gap in 'dog'"):
        filler.fill(["dog"])
    with pytest.raises(UsageError, match="has 101 gaps, but the model knows 100"):
        filler.fill(["[MASK] " * 101])
    with pytest.raises(UsageError, match="ctranslate2 engine does not fill gaps"):
        open_filler(span_model, "ctranslate2")


def test_a_look_shows_the_text_with_its_gap_and_what_is_written_into_it(span_model: Path) -> None:
    seen = headwise.load(span_model).look("dog [MASK] bird fish cow")
    assert "<extra_id_0>" in seen.source.labels
    assert seen.target.labels[1] == "<extra_id_0>"  # after the begin of sentence
