"""The card's sketch of the training lines finds test lines that were trained on, and no others."""

from __future__ import annotations

import json

import pytest

from headwise.errors import ModelError
from headwise.evaluation import contamination
from headwise.evaluation.contamination import overlap, training_sketch


def lines(first: int, last: int) -> list[str]:
    return [f"sentence number {number} of the corpus" for number in range(first, last)]


def test_every_trained_line_is_found_in_a_small_corpus_and_no_other() -> None:
    sketch = training_sketch(lines(0, 1000))
    found = overlap([*lines(5000, 5050), *lines(10, 13), ""], sketch)
    assert (found.lines, found.checked, found.seen, found.estimate) == (53, 53, 3, 3)
    assert found.first == (51, 52, 53)


def test_case_spacing_and_compatibility_forms_do_not_hide_a_line() -> None:
    sketch = training_sketch(["Ｔhe  Old dog\t runs."])
    assert overlap(["the old DOG runs."], sketch).seen == 1


def test_a_sketch_survives_json_and_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contamination, "MAX_HASHES", 256)
    sketch = json.loads(json.dumps(training_sketch(lines(0, 20_000))))
    assert sketch["lines"] == 20_000
    assert sketch["every"] >= 64
    assert len(sketch["hashes"]) <= 256 * 4 * 4 / 3 + 4


def test_the_overlap_with_a_large_corpus_is_estimated_from_a_share_of_its_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(contamination, "MAX_HASHES", 1024)
    sketch = training_sketch(lines(0, 8000))
    found = overlap([*lines(0, 4000), *lines(10_000, 14_000)], sketch)
    assert found.checked < found.lines == 8000
    assert found.estimate == pytest.approx(4000, rel=0.2)


def test_empty_lines_are_never_an_overlap() -> None:
    assert overlap(["", "  "], training_sketch(["", "  ", "text"])).lines == 0


@pytest.mark.parametrize("damage", [{"hashes": "not base64!"}, {"every": "x"}, {"hash": "md5"}])
def test_a_damaged_or_unknown_sketch_is_one_clear_error(damage: dict[str, object]) -> None:
    with pytest.raises(ModelError, match="fingerprints"):
        overlap(["a"], {**training_sketch(["a"]), **damage})
