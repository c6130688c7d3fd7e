"""Two language models are compared line by line."""

from __future__ import annotations

import math
import random

import pytest

from headwise.errors import HeadwiseError
from headwise.evaluation.paired_lines import compare_lines


@pytest.mark.parametrize("test", ["bootstrap", "randomisation"])
def test_a_steady_difference_is_significant_and_noise_is_not(test: str) -> None:
    draw = random.Random(1)
    lengths = [draw.randint(5, 40) for _ in range(200)]
    base = [-length * math.log(2) * 2.0 for length in lengths]  # two bits per character
    better = [value + math.log(2) * draw.uniform(0.5, 1.5) for value in base]
    found = compare_lines(base, better, lengths, test)
    assert found.baseline == pytest.approx(2.0)
    assert found.difference < 0
    assert found.significant
    noise = [value + math.log(2) * draw.uniform(-1, 1) for value in base]
    assert not compare_lines(base, noise, lengths, test).significant
    assert compare_lines(base, base, lengths, test).p_value == 1.0
    assert compare_lines(base, better, lengths, test) == found, "the seed is fixed"


def test_lines_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(HeadwiseError, match="the same lines"):
        compare_lines([-1.0], [-1.0, -2.0], [3])
    with pytest.raises(HeadwiseError, match="unknown significance test 'luck'"):
        compare_lines([-1.0], [-1.0], [3], "luck")
