from __future__ import annotations

import numpy as np
import pytest
import torch
from fixtures_decoding import random_model

from headwise.decoding.beam import Beams, Candidates, Ended, select
from headwise.decoding.hypothesis import length_penalty
from headwise.decoding.options import SearchOptions
from headwise.decoding.source_batches import Sources
from headwise.decoding.token_filters import Restrictions
from headwise.decoding.torch_engine import TorchEngine
from headwise.text.tokenizer import EOS

NO_END = -np.inf


def ended_for(limit: int, beam: int = 5, alpha: float = 0.6) -> Ended:
    return Ended([limit], [False], beam, SearchOptions(beam=beam, length_penalty=alpha))


def beams_of(scores: list[float], said: list[int], beam: int = 5) -> Beams:
    """One sentence whose hypotheses have all said the same, each token at -0.1."""
    tokens = np.array([said] * len(scores), dtype=np.int64).reshape(len(scores), len(said))
    return Beams(beam, np.array([0]), np.array([scores]), tokens, np.full(tokens.shape, -0.1))


def candidates_of(beam: int, sums: list[float], ends: list[float]) -> Candidates:
    filled = np.array([sums + [-np.inf] * (beam - len(sums))])
    zeros = np.zeros((1, beam), dtype=np.int64)
    return Candidates(filled, zeros, zeros + 9, filled - 1.0, np.array([ends]))


@pytest.mark.parametrize(("beam", "enough"), [(2, 3), (4, 6), (5, 7)])
def test_a_sentence_is_done_when_more_hypotheses_have_ended_than_the_beam_has(beam: int, enough: int) -> None:
    """What still runs may be the better one: here it always is."""
    ended = ended_for(50, beam)
    steps = 0
    going = True
    while going:
        steps += 1
        candidates = candidates_of(beam, [-0.5] * beam, [-1.0] + [NO_END] * (beam - 1))
        ended.sort_out(candidates, beams_of([0.0] * beam, list(range(10, 9 + steps)), beam))
        going = bool(candidates.sums[0, 0] > -np.inf)
    assert steps == len(ended.found[0]) == enough


def test_a_sentence_is_done_earlier_where_nothing_that_runs_can_win() -> None:
    ended, candidates = ended_for(50), candidates_of(5, [-9.0], [-1.0])
    ended.sort_out(candidates, beams_of([0.0], []))
    assert (candidates.sums == -np.inf).all()
    assert len(ended.found[0]) == 1


def test_what_lags_behind_is_waited_for_until_a_quarter_more_would_not_help() -> None:
    """Of a length of 20 it may grow to 28: its sum is divided by more then."""
    beams = beams_of([-1.9, -3.0], list(range(4, 23)))
    best_score = -2.0 / length_penalty(20, 0.6)
    just_enough = best_score * length_penalty(28, 0.6)
    for limit, behind, waits in ((70, just_enough + 0.01, True), (70, just_enough - 0.01, False)):
        ended, candidates = ended_for(limit), candidates_of(5, [behind], [-0.1, NO_END])
        ended.sort_out(candidates, beams)
        assert ended.found[0][0].score == pytest.approx(best_score)
        assert bool(candidates.sums[0, 0] > -np.inf) is waits
    near_the_end, candidates = ended_for(22), candidates_of(5, [just_enough + 0.01], [-0.1, NO_END])
    near_the_end.sort_out(candidates, beams)
    assert (candidates.sums == -np.inf).all()


def test_where_there_is_no_room_the_best_stop_as_they_are() -> None:
    """The end of sentence takes one of the beam's three places."""
    ended, candidates = ended_for(3, beam=3), candidates_of(3, [-0.4, -0.6, -0.8], [-0.3, NO_END, NO_END])
    ended.sort_out(candidates, beams_of([-0.2, -0.3, -0.4], [7, 8], beam=3))
    assert [(one.tokens, one.stopped) for one in ended.found[0]] == [
        ((7, 8), "eos"),
        ((7, 8, 9), "length"),
        ((7, 8, 9), "length"),
    ]
    assert (candidates.sums == -np.inf).all()


@pytest.mark.parametrize("vocab", [6, 40])
@pytest.mark.parametrize("beam", [1, 2, 5, 9])
def test_what_goes_on_and_what_ends_are_the_best_of_a_full_sort(vocab: int, beam: int) -> None:
    options = SearchOptions(beam=beam)
    sources = Sources.of([0, 1], [[5], [5, 4]], None, options)
    generator = torch.Generator().manual_seed(beam)
    for width in {1, beam}:
        log_probs = torch.randn(2 * width, vocab, generator=generator).log_softmax(dim=-1)
        scores = torch.randn(2, width, generator=generator).numpy()
        scores[1, 1:2] = -np.inf  # an empty place
        beams = Beams(beam, np.arange(2), scores, np.empty((2 * width, 0), dtype=np.int64), np.empty((2 * width, 0)))
        by_hand = [
            sorted(
                ((scores[place, row] + log_probs[place * width + row, token].item(), row, token)
                 for row in range(width) for token in range(EOS, vocab) if scores[place, row] > -np.inf),
                reverse=True,
            )
            for place in range(2)
        ]  # fmt: skip
        chosen = select(log_probs, beams, Restrictions(sources, options))
        assert chosen.sums.shape == (2, beam)
        for place, expected in enumerate(by_hand):
            others = [(row, token) for _, row, token in expected if token != EOS][:beam]
            alive = chosen.sums[place] > -np.inf
            found = zip(chosen.rows[place, alive].tolist(), chosen.tokens[place, alive].tolist(), strict=True)
            assert list(found) == others
            ends = {row for _, row, token in expected[:beam] if token == EOS}
            assert set(np.flatnonzero(chosen.ends[place] + scores[place] > -np.inf)) == ends


def test_a_model_that_gives_no_numbers_ends_the_search() -> None:
    model = random_model(1)
    with torch.no_grad():
        model.output.weight.fill_(torch.nan)
    assert TorchEngine(model).search([[5, 6, 7]], SearchOptions(beam=3)) == [[]]
