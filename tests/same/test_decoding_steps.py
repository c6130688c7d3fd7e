"""The fast cached step, the model's own cached step and the uncached forward pass say the same."""

from __future__ import annotations

import pytest
import torch
from fixtures_decoding import Uncached, random_model, random_sources
from torch.testing import assert_close

from headwise.decoding.beam import beam_search
from headwise.decoding.fast_step import FastStepper, fast_stepper
from headwise.decoding.options import SearchOptions
from headwise.decoding.source_batches import Sources
from headwise.decoding.token_loop import greedy_search

KINDS = {
    "paper": {},
    "pre-norm": {"norm": "pre"},
    "post-norm with a last norm": {"final_norm": True},
    "gelu and learned positions": {"activation": "gelu", "positions": "learned", "max_length": 60},
    "no positions": {"positions": "none"},
    "tied": {"tie": "all"},
}


@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_fast_step_gives_the_logits_of_the_models_own_step_while_hypotheses_move_and_sentences_leave(kind: str) -> None:
    model = random_model(1, **KINDS[kind])
    fast = fast_stepper(model)
    assert isinstance(fast, FastStepper)
    torch.manual_seed(2)
    ids, lengths = torch.randint(4, 60, (3, 7)), torch.tensor([7, 4, 6])
    states = [stepper.start((ids, lengths), 2) for stepper in (model, fast)]
    rows, moves = 3, {0: [0, 0, 1, 1, 2, 2], 3: [1, 0, 3, 3, 5, 4], 30: [3, 2, 4, 5]}  # one hypothesis each at first
    for step in range(40):  # more than the cache holds at first
        tokens = torch.randint(4, 60, (rows,))
        own, found = (
            stepper.output.logits(stepper.advance(state, tokens))
            for stepper, state in zip((model, fast), states, strict=True)
        )
        assert_close(found, own, atol=2e-5, rtol=1e-4)
        if step in moves:
            indices = torch.tensor(moves[step])
            rows = indices.numel()
            for state in states:
                state.reorder(indices)


@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_cached_search_finds_what_uncached_search_finds(kind: str) -> None:
    model = random_model(3, **KINDS[kind])
    options = SearchOptions(beam=4, n_best=4, max_extra=5)
    sources = Sources.of(range(30), random_sources(30, seed=4), None, options)
    searched = Uncached(model), fast_stepper(model)
    slow, fast = (beam_search(each, sources, options) for each in searched)
    assert [[h.tokens for h in found] for found in fast] == [[h.tokens for h in found] for found in slow]
    assert [h.score for found in fast for h in found] == pytest.approx(
        [h.score for found in slow for h in found], abs=1e-4
    )
    slow_greedy, fast_greedy = (greedy_search(each, sources, options) for each in searched)
    assert [h.tokens for h in slow_greedy] == [h.tokens for h in fast_greedy]


@torch.inference_mode()
def test_searches_at_the_same_time_do_not_share_their_past() -> None:
    model = random_model(1)
    fast = fast_stepper(model)
    torch.manual_seed(3)
    sources, tokens = torch.randint(4, 60, (2, 1, 6)), torch.randint(4, 60, (2, 5, 1))
    states = [fast.start((source, None), 1) for source in sources]
    for step in range(5):
        for number, state in enumerate(states):
            logits = fast.output.logits(fast.advance(state, tokens[number, step]))
            alone = model(sources[number], tokens[number, : step + 1].T)[:, -1]
            assert_close(logits, alone, atol=2e-5, rtol=1e-4)
