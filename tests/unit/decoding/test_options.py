from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from headwise.config.schema import Decoding
from headwise.decoding.hypothesis import Hypothesis, best, length_penalty
from headwise.decoding.options import Sampling, SearchOptions
from headwise.errors import UsageError


def test_defaults_are_those_of_the_recipe() -> None:
    options, recipe = SearchOptions(), Decoding.model_validate({})
    assert (options.beam, options.length_penalty, options.max_extra) == (
        recipe.beam,
        recipe.length_penalty,
        recipe.max_extra,
    )


def test_a_models_own_settings_hold_unless_the_call_says_otherwise() -> None:
    options = SearchOptions.of_model({"beam": 3, "length_penalty": 1.0}, beam=None, length_penalty=0.2, n_best=2)
    assert (options.beam, options.length_penalty, options.n_best) == (3, 0.2, 2)


def test_asking_for_more_answers_than_the_models_beam_widens_it() -> None:
    assert SearchOptions.of_model({"beam": 3}, n_best=7).beam == 7


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"beam": 0}, "beam"),
        ({"beam": 2, "n_best": 3}, "n_best"),
        ({"max_extra": 0}, "max_extra"),
        ({"length_penalty": -1.0}, "length_penalty"),
        ({"no_repeat_ngram": -1}, "no_repeat_ngram"),
        ({"batch_sentences": 0}, "batch_sentences"),
    ],
)
def test_impossible_options_are_named_in_one_line(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(UsageError, match=named) as caught:
        SearchOptions(**settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "settings", [{"temperature": -0.1}, {"top_k": -1}, {"top_p": 0.0}, {"min_p": 1.1}, {"repetition_penalty": 0.0}]
)
def test_impossible_sampling_is_named_in_one_line(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(settings))):
        Sampling(**settings)


def test_length_penalty_is_the_papers() -> None:
    assert length_penalty(1, 0.6) == pytest.approx(1.0)
    assert length_penalty(7, 0.6) == pytest.approx(2.0**0.6)
    assert length_penalty(13, 0.0) == 1.0


def test_the_best_are_distinct_and_loops_come_last() -> None:
    def hypothesis(tokens: tuple[int, ...], score: float, stopped: Any = "eos") -> Hypothesis:
        return Hypothesis(tokens, score, (), stopped)

    found = [hypothesis((4,), -3.0), hypothesis((5,), -0.1, "loop"), hypothesis((6,), -1.0), hypothesis((4,), -2.0)]
    assert [(h.tokens, h.score) for h in best(found, 5)] == [((6,), -1.0), ((4,), -2.0), ((5,), -0.1)]


def test_the_mean_log_probability_comes_from_the_score_when_tokens_have_none() -> None:
    whole = Hypothesis.of((4, 5), (-1.0, -2.0, -3.0), "eos", alpha=0.6)
    bare = Hypothesis(whole.tokens, whole.score, (), "eos")
    assert bare.mean_log_prob(0.6) == pytest.approx(-2.0)
    assert Hypothesis((), 0.0, (), "length").mean_log_prob(0.6) == 0.0


def test_what_the_fast_path_imports_does_not_import_torch() -> None:
    modules = ["options", "hypothesis", "engine", "loops", "translator"]
    names = ", ".join(f"headwise.decoding.{name}" for name in modules)
    code = f"import sys, {names}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
