from __future__ import annotations

import pytest

from headwise.decoding.beam import Ended
from headwise.decoding.hypothesis import length_penalty
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


def test_what_lags_behind_is_waited_for_until_a_quarter_more_would_not_help() -> None:
    """Of a length of 20 it may grow to 28: its sum is divided by more then."""
    said = None
    for token in range(4, 23):
        said = (said, token, -0.1)
    best_score = -2.0 / length_penalty(20, 0.6)
    just_enough = best_score * length_penalty(28, 0.6)
    for behind, waits in ((just_enough + 0.01, True), (just_enough - 0.01, False)):
        ended = Ended(70, False, 5, SearchOptions(beam=5, length_penalty=0.6))
        going = ended.sort_out([(-2.0, 0, EOS, -0.1), (behind, 1, 9, -0.5)], [said] * 5, 19)
        assert ended.found[0].score == pytest.approx(best_score)
        assert bool(going) is waits
    near_the_end = Ended(22, False, 5, SearchOptions(beam=5, length_penalty=0.6))
    assert not near_the_end.sort_out([(-2.0, 0, EOS, -0.1), (just_enough + 0.01, 1, 9, -0.5)], [said] * 5, 19)
