from __future__ import annotations

import pytest
from fixtures_decoding import random_model, random_sources

from headwise.decoding.scoring import score_targets
from headwise.decoding.torch_engine import TorchEngine
from headwise.errors import UsageError


def test_a_targets_log_probability_does_not_depend_on_the_targets_around_it() -> None:
    model = random_model(3)
    sources, targets = random_sources(60, seed=2), random_sources(60, seed=3)
    together = TorchEngine(model).score(sources, targets)
    for place in range(0, 60, 7):
        (alone,) = score_targets(model, [sources[place]], [targets[place]])
        assert len(alone) == len(targets[place]) + 1
        assert together[place] == pytest.approx(alone, abs=1e-4)


def test_an_empty_target_is_its_end_of_sentence_alone() -> None:
    ((only,),) = TorchEngine(random_model(3)).score([[5, 6]], [[]])
    assert only < 0


def test_as_many_targets_as_sources_are_needed() -> None:
    with pytest.raises(UsageError, match="1 sources but 2 targets"):
        TorchEngine(random_model(3)).score([[5]], [[5], [6]])
