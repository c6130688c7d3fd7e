"""Word and character error rates."""

from __future__ import annotations

import pytest

from headwise.errors import DataError
from headwise.evaluation.error_rates import error_rates, normalised


def test_errors_are_counted_by_kind_and_by_word() -> None:
    found = error_rates(["one two three", "four five"], ["one too three extra", "five"])
    assert (found.substitutions, found.insertions, found.deletions, found.words) == (1, 1, 1, 5)
    assert found.wer == pytest.approx(60)
    assert found.wrong == {("two", "too"): 1, ("", "extra"): 1, ("four", ""): 1}
    assert (found.sentences, found.wrong_sentences) == (2, 2)
    assert "    1 × (nothing) → extra" in found.lines()


def test_the_signature_tells_the_normalisation() -> None:
    assert error_rates(["Don\u2019t stop!"], ["don't stop"]).wer == 0
    raw = error_rates(["Don't stop!"], ["don't stop"], "none")
    assert raw.wer == 100
    assert raw.signature.startswith("norm:none|version:jiwer-")
    assert "norm:nfkc+lower+no-punctuation" in error_rates(["a"], ["a"]).signature


@pytest.mark.parametrize(
    ("text", "plain"),
    [("Hello,  World!", "hello world"), ("rock'n'roll 'tis", "rock'n'roll tis"), ("ＡＢＣ", "abc"), ("— …", "")],
)
def test_plain_text_has_no_case_and_no_punctuation(text: str, plain: str) -> None:
    assert normalised(text) == plain


def test_what_cannot_be_compared_is_refused() -> None:
    for references, hypotheses in ((["a"], []), (["!"], ["a"])):
        with pytest.raises(DataError):
            error_rates(references, hypotheses)
