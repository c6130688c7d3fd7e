"""The steps of beam search one by one, on beams that are made by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fixtures_decoding import random_model, random_sources

from headwise.decoding.beam import Beams, Candidates, finish, grow, restrict, select, stop_loops
from headwise.decoding.hypothesis import Hypothesis
from headwise.decoding.options import SearchOptions
from headwise.decoding.source_batches import Sources
from headwise.decoding.token_filters import TokenFilters
from headwise.decoding.torch_engine import TorchEngine
from headwise.errors import WorkFailed
from headwise.text.tokenizer import EOS, PAD

NONE = -np.inf


def beams_of(scores: list[list[float]], said: list[int], beam: int = 3) -> Beams:
    """Hypotheses that have all said the same, each token at -0.1."""
    tokens = np.tile(np.array(said, dtype=np.int64), (np.size(scores), 1))
    return Beams(beam, np.arange(len(scores)), np.array(scores), tokens, np.full(tokens.shape, -0.1))


def candidates_of(*sentences: list[tuple[float, int, int]]) -> Candidates:
    """(sum, row, token) best first; a token's own log-probability is -0.5."""
    sums, rows, tokens = (np.array([[one[n] for one in each] for each in sentences]) for n in range(3))
    return Candidates(sums, rows, tokens, np.full(sums.shape, -0.5))


LONG = np.array([50, 50])


def test_a_search_starts_with_one_empty_hypothesis_per_sentence() -> None:
    beams = Beams.start(3, beam=4)
    assert (beams.width, beams.length, beams.scores.tolist()) == (1, 0, [[0.0]] * 3)
    assert beams.row_sentences().tolist() == [0, 1, 2]


@pytest.mark.parametrize("vocab", [6, 40])
@pytest.mark.parametrize("beam", [1, 2, 5, 9])
def test_candidates_are_the_best_of_a_full_sort(vocab: int, beam: int) -> None:
    generator = torch.Generator().manual_seed(beam)
    for width in {1, beam}:
        log_probs = torch.randn(2 * width, vocab, generator=generator).log_softmax(dim=-1)
        scores = torch.randn(2, width, generator=generator).numpy()
        scores[1, 1:2] = NONE  # an empty place
        beams = Beams(beam, np.arange(2), scores, np.empty((2 * width, 0), dtype=np.int64), np.empty((2 * width, 0)))
        by_hand = [
            sorted(
                ((scores[place, row] + log_probs[place * width + row, token].item(), row, token)
                 for row in range(width) for token in range(EOS, vocab) if scores[place, row] > NONE),
                reverse=True,
            )
            for place in range(2)
        ]  # fmt: skip
        chosen = select(log_probs, beams, TokenFilters())
        assert chosen.sums.shape == (2, 2 * beam), "a vocabulary may have fewer: the other places are empty"
        for place, expected in enumerate(by_hand):
            alive = chosen.sums[place] > NONE
            found = zip(chosen.rows[place, alive].tolist(), chosen.tokens[place, alive].tolist(), strict=True)
            assert list(found) == [(row, token) for _, row, token in expected[: 2 * beam]]


def test_of_the_best_those_that_end_are_kept_aside_and_the_next_take_their_places() -> None:
    beams = beams_of([[-0.1, -0.2, -0.3]], [7, 8])
    candidates = candidates_of(
        [(-0.4, 0, 9), (-0.5, 1, EOS), (-0.6, 2, 9), (-0.7, 0, EOS), (-0.8, 1, 9), (-0.9, 0, 10)]
    )
    ended, going = finish(candidates, beams, LONG)
    (only,) = ended  # the other end of sentence is beyond the beam: better hypotheses run
    assert (only.tokens, only.log_probs, only.stopped) == ([7, 8], [-0.1, -0.1, -0.5], "eos")
    assert going.sums.tolist() == [[-0.4, -0.6, -0.8]]
    assert (going.rows.tolist(), going.tokens.tolist()) == ([[0, 2, 1]], [[9, 9, 9]])


def test_where_the_limit_is_reached_the_best_stop_as_they_are() -> None:
    beams = beams_of([[-0.2, -0.3, -0.4], [-0.2, -0.3, -0.4]], [7, 8])
    one = [(-0.3, 0, EOS), (-0.4, 0, 9), (-0.6, 1, 9), (-0.8, 2, 9), (-0.9, 0, 10), (-1.0, 1, 10)]
    ended, going = finish(candidates_of(one, one), beams, np.array([3, 50]))
    assert [(e.sentence, e.tokens, e.stopped) for e in ended] == [
        (0, [7, 8], "eos"),
        (0, [7, 8, 9], "length"),
        (0, [7, 8, 9], "length"),
        (1, [7, 8], "eos"),
    ]
    assert (going.sums[0] == NONE).all()
    assert (going.tokens[0] == PAD).all()
    assert going.sums[1].tolist() == [-0.4, -0.6, -0.8]


def test_places_without_a_candidate_stay_empty() -> None:
    few = [(-0.5, 0, 9), (-0.7, 0, EOS), *[(NONE, 0, 0)] * 4]
    ended, going = finish(candidates_of(few), beams_of([[0.0]], []), LONG)
    assert [one.stopped for one in ended] == ["eos"]
    assert going.sums.tolist() == [[-0.5, NONE, NONE]]
    assert going.tokens.tolist() == [[9, PAD, PAD]]


def test_hypotheses_follow_their_parents_and_sentences_that_are_done_leave() -> None:
    tokens = np.array([[4], [5], [6], [7]])
    beams = Beams(2, np.array([3, 8]), np.array([[-1.0, -2.0], [-1.5, -2.5]]), tokens, -0.1 * tokens)
    going = candidates_of([(-3.0, 0, 10), (-3.5, 1, 11)], [(-2.0, 1, 12), (-2.5, 1, 13)])
    grown, parents = grow(beams, going, np.array([1]))
    assert parents.tolist() == [3, 3]
    assert grown.sentences.tolist() == [8]
    assert grown.tokens.tolist() == [[7, 12], [7, 13]]
    assert grown.scores.tolist() == [[-2.0, -2.5]]
    assert grown.log_probs.tolist() == [[pytest.approx(-0.7), -0.5]] * 2
    assert beams.tokens.tolist() == tokens.tolist(), "a step changes no beams"


def test_a_hypothesis_in_a_cycle_ends_at_its_first_pass_where_it_is_guarded() -> None:
    beams = beams_of([[-1.0, NONE], [-1.0, -2.0]], [7, 8, 9] + [20, 21] * 10 + [20])
    ended, left = stop_loops(beams, np.array([True, False]))
    assert [(e.sentence, e.tokens, e.stopped, len(e.log_probs)) for e in ended] == [(0, [7, 8, 9, 20, 21], "loop", 5)]
    assert left.scores.tolist() == [[NONE, NONE], [-1.0, -2.0]]
    assert beams.scores[0, 0] == -1.0, "a step changes no beams"


def test_filters_see_the_sentence_and_the_tokens_of_each_row() -> None:
    beams = Beams(1, np.array([1, 0]), np.zeros((2, 1)), np.array([[5], [6]]), np.zeros((2, 1)))
    prefixes = torch.tensor([[-1, 7], [-1, 8]])
    log_probs = restrict(torch.zeros(2, 10), beams, TokenFilters(prefixes=prefixes))
    assert [row.isfinite().nonzero().flatten().tolist() for row in log_probs] == [[8], [7]]
    log_probs = restrict(torch.zeros(2, 10), beams, TokenFilters(no_repeat=1))
    assert [int(row[5:7].isinf().nonzero()) + 5 for row in log_probs] == [5, 6]


@pytest.mark.parametrize("beam", [2, 4])
def test_a_sentence_is_done_when_as_many_hypotheses_have_ended_as_the_beam_has(beam: int) -> None:
    """A beam of everything that ended: in its order, each once, no more than asked for."""
    found = TorchEngine(random_model(1)).search(
        random_sources(20, seed=1), SearchOptions(beam=beam, n_best=beam, max_extra=5)
    )
    for hypotheses in found:
        assert 1 <= len(hypotheses) <= beam
        assert len({hypothesis.tokens for hypothesis in hypotheses}) == len(hypotheses)
        scores = [hypothesis.score for hypothesis in hypotheses if hypothesis.stopped != "loop"]
        assert scores == sorted(scores, reverse=True)


def test_a_beam_as_wide_as_all_outputs_finds_the_best_of_all() -> None:
    """Three tokens of text and outputs of at most three tokens: by hand there are forty."""
    model, source = random_model(2, vocab=7), [4, 5]
    options = SearchOptions(beam=60, n_best=1, max_extra=1)
    ((found,),) = TorchEngine(model).search([source], options)
    texts = [[]]  # type: list[list[int]]
    every: list[Hypothesis] = []
    for length in range(4):
        for text in texts:
            log_probs = TorchEngine(model).score([source], [text])[0]
            if length < 3:
                every.append(Hypothesis.of(text, log_probs, "eos", options.length_penalty))
            else:
                every.append(Hypothesis.of(text, log_probs[:-1], "length", options.length_penalty))
        texts = [[*text, token] for text in texts for token in (4, 5, 6)]
    best = max(every, key=lambda hypothesis: hypothesis.score)
    assert len(every) == 40
    assert (found.tokens, found.stopped) == (best.tokens, best.stopped)
    assert found.score == pytest.approx(best.score, abs=1e-4)


def test_a_model_whose_probabilities_are_nan_is_one_clear_line() -> None:
    model = random_model(1)
    with torch.no_grad():
        model.output.weight.fill_(torch.nan)
    with pytest.raises(WorkFailed, match="probabilities are NaN"):
        TorchEngine(model).search([[5, 6, 7]], SearchOptions(beam=3))


def test_sources_that_ask_for_nothing_have_the_filters_of_every_search() -> None:
    sources = Sources.of([0], [[5]], None, SearchOptions())
    log_probs = restrict(torch.zeros(1, 8), Beams.start(1, 2), TokenFilters.of(sources, SearchOptions()))
    assert log_probs[0].isfinite().nonzero().flatten().tolist() == [EOS, 4, 5, 6, 7]
