from __future__ import annotations

import pytest

from headwise.decoding.beam import Ended
from headwise.decoding.options import SearchOptions
from headwise.text.tokenizer import EOS


@pytest.mark.parametrize(("beam", "enough"), [(2, 3), (4, 6), (5, 7)])
def test_a_sentence_is_done_when_more_hypotheses_have_ended_than_the_beam_has(beam: int, enough: int) -> None:
    """What still runs may be the better one: here it always is."""
    ended = Ended(50, False, beam, SearchOptions(beam=beam))
    candidates = [(-0.5, 0, 9, -0.5), (-1.0, 0, EOS, -1.0), *[(-1.5, 0, token, -1.5) for token in range(10, 10 + beam)]]
    steps = next(length for length in range(50) if not ended.sort_out(candidates, [None] * beam, length)) + 1
    assert steps == len(ended.found) == enough


def test_a_sentence_is_done_earlier_where_nothing_that_runs_can_win() -> None:
    ended = Ended(50, False, 5, SearchOptions(beam=5))
    assert not ended.sort_out([(-1.0, 0, EOS, -1.0), (-9.0, 0, 9, -9.0)], [None] * 5, 0)
    assert len(ended.found) == 1
