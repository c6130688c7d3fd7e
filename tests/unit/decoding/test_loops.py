from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from headwise.decoding.loops import has_loop, kept_length
from headwise.decoding.options import SearchOptions
from headwise.decoding.torch_engine import TorchEngine
from headwise.models.interface import Network
from headwise.nn import Embedding


@pytest.mark.parametrize("cycle", [[7], [7, 8], [7, 8, 9], list(range(4, 14))])
def test_a_repeated_cycle_is_found_and_cut_to_its_first_pass(cycle: list[int]) -> None:
    tokens = [20, 21, 22] + cycle * 21
    tokens = tokens[: len(tokens) // 8 * 8]
    assert kept_length(tokens) == 3 + len(cycle)


@pytest.mark.parametrize(
    "tokens",
    [
        [4, 5] * 7,  # too little to be sure
        list(range(4, 40)),
        [4, 5, 6, 7] * 3 + [8] * 4,
        [9] * 15 + [10],
    ],
)
def test_what_repeats_a_little_is_left_alone(tokens: list[int]) -> None:
    assert kept_length(tokens) == len(tokens)


def test_a_loop_in_the_source_is_seen_wherever_it_stands() -> None:
    assert has_loop([4, 5, 6] + [7] * 16 + [8, 9])
    assert not has_loop([4, 5, 6] + [7] * 15 + [8, 9])


@dataclass
class Place:
    length: int = 0

    def reorder(self, indices: Tensor) -> None:
        pass


class Rigged(Network):
    """Says 10 11 12, then 20 21 for ever; its second choice is another token that never leads anywhere."""

    def __init__(self) -> None:
        super().__init__()
        self.output = Embedding(30, 30)
        with torch.no_grad():
            self.output.weight.copy_(torch.eye(30))

    def start(self, source: tuple[Tensor, ...] | None, rows: int = 1) -> Place:
        return Place()

    def advance(self, state: Place, tokens: Tensor) -> Tensor:
        said = [10, 11, 12][state.length] if state.length < 3 else 20 + (state.length - 3) % 2
        state.length += 1
        states = torch.zeros(tokens.numel(), 30)
        states[:, said] = 12.0
        return states


def test_a_model_rigged_to_loop_is_stopped_and_flagged_by_greedy_search() -> None:
    ((found,),) = TorchEngine(Rigged()).search([[4] * 4 + list(range(4, 30)) * 20], SearchOptions(beam=1))
    assert found.stopped == "loop"
    assert found.tokens == (10, 11, 12, 20, 21)
    assert len(found.log_probs) == 5


def test_a_model_rigged_to_loop_does_not_win_in_beam_search() -> None:
    (found,) = TorchEngine(Rigged()).search([list(range(4, 30))], SearchOptions(beam=3, n_best=3, max_extra=30))
    assert [h.stopped for h in found].count("loop") >= 1
    ranks = [h.stopped == "loop" for h in found]
    assert ranks == sorted(ranks)


def test_a_source_that_loops_itself_may_be_answered_by_a_loop() -> None:
    ((found,),) = TorchEngine(Rigged()).search([[5] * 30], SearchOptions(beam=1, max_extra=10))
    assert (found.stopped, len(found.tokens)) == ("length", 40)
