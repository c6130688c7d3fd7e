from __future__ import annotations

import pytest

from headwise.config.families.bigbird import MOST_RANDOM, BigBirdSettings
from headwise.errors import ShapeError


def test_more_random_blocks_than_any_text_needs_are_refused_at_once() -> None:
    assert BigBirdSettings(random=MOST_RANDOM).random == MOST_RANDOM
    with pytest.raises(ShapeError, match="random must be less than or equal to 1024"):
        BigBirdSettings.of({"random": MOST_RANDOM + 1})
