"""Text that is split off for validation: always the same lines, and no sentence on both sides."""

from __future__ import annotations

from pathlib import Path

from headwise.config.schema import Filters
from headwise.data.chunks import Chunks, Files
from headwise.data.split import PASSAGE, Part, part_of_lines, part_of_pairs

SENTENCES = [f"sentence number {number}" for number in range(5000)]


def test_the_split_has_about_the_share_that_was_asked_for_and_never_changes() -> None:
    parts = part_of_pairs(SENTENCES, 0.1)
    assert 400 < parts.count("validation") < 600
    assert parts == part_of_pairs(SENTENCES, 0.1)
    assert part_of_pairs(SENTENCES, 0.0).count("validation") == 0


def test_sentences_that_differ_by_case_and_spaces_only_are_on_one_side() -> None:
    for sentence in SENTENCES[:200]:
        assert len(set(part_of_pairs([sentence, sentence.upper(), f"  {sentence} "], 0.5))) == 1


def test_a_long_line_of_running_text_that_is_held_out_is_not_trained_on(tmp_path: Path) -> None:
    lines = [f"line {number} of a text that goes on and on for a while" for number in range(10 * PASSAGE)]
    lines[5 * PASSAGE] = lines[0].upper()  # the first passage is held out
    lines[6 * PASSAGE] = lines[1] = "ROMEO:"
    (tmp_path / "text").write_text("\n".join(lines) + "\n")

    def kept(part: Part) -> list[str]:
        chunks = Chunks(Files(text=[str(tmp_path / "text")], part=part, share=0.1), Filters())
        return [text for chunk in chunks for text in chunk.texts["text"]]

    training, validation = kept("training"), kept("validation")
    assert validation == lines[:PASSAGE]
    assert training == [*lines[PASSAGE : 5 * PASSAGE], *lines[5 * PASSAGE + 1 :]]
    assert "ROMEO:" in training, "short lines recur"


def test_running_text_is_held_out_in_passages() -> None:
    parts = part_of_lines(0, 100 * PASSAGE, 0.2)
    passages = [set(parts[start : start + PASSAGE]) for start in range(0, len(parts), PASSAGE)]
    assert all(len(passage) == 1 for passage in passages)
    assert sum(passage == {"validation"} for passage in passages) == 20
    assert "validation" in part_of_lines(0, PASSAGE + 1, 0.01), "a short text has a validation part too"
    assert set(part_of_lines(0, 100, 0.0)) == {"training"}
    assert part_of_lines(150, 30, 0.2) == parts[150:180]
