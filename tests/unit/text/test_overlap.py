from __future__ import annotations

from headwise.text.overlap import EXACT, NORMALISED, SOURCE_ONLY, HeldOut, normalised


def match(held_out: HeldOut, source: str, target: str | None, number: int) -> None:
    held_out.match(hash(normalised(source)), source, target, "train.en", number)


def test_matches_are_exact_normalised_or_of_the_source_alone() -> None:
    held_out = HeldOut("test")
    for source, target in (("A dog.", "Ein Hund."), ("A cat.", "Eine Katze."), ("A cow.", "Eine Kuh."), ("", "")):
        held_out.add(source, target)
    for number, (source, target) in enumerate(
        [("A dog.", "Ein Hund."), ("a  CAT.", "eine katze."), ("A cow.", "Ein Rind."), ("A bee.", "Eine Biene.")],
        start=1,
    ):
        match(held_out, source, target, number)
    assert [held_out.count(kind) for kind in (EXACT, NORMALISED, SOURCE_ONLY)] == [1, 1, 1]
    assert (held_out.lines, held_out.compared) == (4, 3)
    assert held_out.places(NORMALISED, 5) == [(1, "train.en", 1), (2, "train.en", 2)]
    assert held_out.places(SOURCE_ONLY, 1) == [(1, "train.en", 1)]


def test_the_closest_of_several_matches_counts() -> None:
    held_out = HeldOut("test")
    held_out.add("A dog.", "Ein Hund.")
    match(held_out, "A dog.", "Ein Tier.", 1)
    match(held_out, "A dog.", "Ein Hund.", 2)
    match(held_out, "a dog.", "ein hund.", 3)
    assert held_out.places(SOURCE_ONLY, 9) == [(1, "train.en", 2)]


def test_short_lines_of_running_text_are_not_compared() -> None:
    held_out = HeldOut("test")
    held_out.add("ROMEO:", None)
    held_out.add("But, soft! what light through yonder window breaks?", None)
    assert (held_out.lines, held_out.compared) == (2, 1)
