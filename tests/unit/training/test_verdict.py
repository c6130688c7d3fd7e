"""A run is called what it is: learned, still improving, overfitted, or a failure."""

from __future__ import annotations

from typing import Any

import pytest

from headwise.training.verdict import forecast, verdict


def records(training: list[float], validation: list[float]) -> list[dict[str, Any]]:
    steps = range(100, 100 * len(training) + 1, 100)
    told = [{"event": "train", "step": step, "log_loss": loss} for step, loss in zip(steps, training, strict=True)]
    checks = range(100, 100 * len(validation) + 1, 100)
    return told + [
        {"event": "validation", "step": step, "log_loss": loss} for step, loss in zip(checks, validation, strict=True)
    ]


@pytest.mark.parametrize(
    ("training", "validation", "said"),
    [
        ([8.0, 7.9], [7.95], "did not learn"),
        ([8.0, 3.0, 2.0], [5.0, 4.0, 3.0], "still improving"),
        ([8.0, 3.0, 1.0], [5.0, 4.0, 4.3, 4.6], "overfitted"),
        ([2.4, 0.1, 0.06], [0.055, 0.056, 0.057, 0.058], "levelled off at 0.06"),  # next to nothing of what it learned
        ([8.0, 3.0, 2.9], [5.0, 3.5, 3.49, 3.49], "levelled off at 3.49"),
        ([8.0, 3.0, 3.9], [5.0, 3.5, 3.49, 3.49], "more time or a larger model.preset"),
        ([8.0, 3.0], [], "it learned"),
        ([], [], "nothing was learned"),
    ],
)
def test_the_verdict_says_what_the_losses_say(training: list[float], validation: list[float], said: str) -> None:
    assert said in verdict(records(training, validation))


def test_a_translator_without_a_translation_is_a_failure_whatever_its_loss() -> None:
    told = records([9.0, 6.5], [6.6])
    told[-1]["bleu"] = 0.0001
    assert verdict(told).startswith("it did not learn to translate: BLEU 0.0 on validation, 200 updates; train longer")
    told[-1]["bleu"] = 24.0
    assert verdict(told) == "it learned: the loss fell from 9.00 to 6.60"


def test_a_run_of_few_updates_or_a_poor_score_has_only_begun() -> None:
    begun = "it has only begun to learn: the loss fell from 9.00 to 6.60 after 200 updates; train longer"
    assert verdict(records([9.0, 6.5], [6.6])).startswith(begun)
    assert verdict(records([9.0, 4.0], [4.2])) == "it learned: the loss fell from 9.00 to 4.20"
    assert verdict(records([9.0, 7.0, 6.5], [6.6])).startswith("it learned")
    poor = records([9.0, 3.0, 2.9], [5.0, 3.5, 3.49, 3.49])
    poor[-1]["bleu"] = 2.0
    assert verdict(poor).startswith("it has only begun to learn: BLEU 2.0 on validation after 400 updates")


def test_a_run_that_patience_ended_is_not_told_to_go_on() -> None:
    end = {"event": "end", "step": 400, "reason": "patience", "best": {"step": 100}}
    improving = records([8.0, 3.0, 2.0, 1.5], [5.0, 4.0, 3.0, 2.0])
    assert "more time would help" in verdict([*improving, {**end, "reason": "steps"}])
    stopped = "it learned, and stopped early: validation has not been better since update 100"
    assert verdict([*improving, end]) == stopped
    assert verdict([*records([1.2, 1.1, 1.0], [0.9, 0.8, 0.75]), end]) == stopped, "not: train longer"
    assert "overfitted" in verdict([*records([8.0, 3.0, 1.0], [5.0, 4.0, 4.3, 4.6]), end])
    assert "still improving" in verdict([*improving, end, {**end, "reason": "steps"}]), "it went on"


def test_a_classifier_of_two_labels_learns_where_its_loss_is_small() -> None:
    assert verdict(records([0.69, 0.6, 0.55, 0.5], [0.6, 0.55])).startswith("it learned")
    assert verdict(records([0.70, 0.69, 0.69, 0.69], [0.69, 0.69])).startswith("it did not learn")


def test_fine_tuning_begins_low_and_has_helped_if_the_loss_fell_at_all() -> None:
    assert verdict(records([2.0, 1.9], [1.95]), from_scratch=False) == "it learned: the loss fell from 2.00 to 1.95"
    assert verdict(records([2.0, 2.4], [2.1]), from_scratch=False) == (
        "fine-tuning did not help: the loss went from 2.00 to 2.40; lower training.learning_rate, or train longer"
    )


def test_a_run_that_cannot_learn_is_told_so_beforehand() -> None:
    assert "warm-up of 4,000" in str(forecast(27, 4000))
    assert "lower training.warmup to about 2," in str(forecast(27, 4000))
    assert "learn little" in str(forecast(5000, 4000))
    assert "hardly learn" in str(forecast(27, 2))
    assert forecast(900, 90) is None
    assert forecast(None, 4000) is None
    assert forecast(27, 2, from_scratch=False) is None


def test_what_was_reached_is_that_of_validation_not_of_a_last_odd_batch() -> None:
    assert verdict(records([9.3, 6.3, 4.0], [5.7])) == "it learned: the loss fell from 9.30 to 5.70"
