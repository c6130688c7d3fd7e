"""Rules of what a speech model may write, compared with transformers' own."""

from __future__ import annotations

import pytest
import torch

from headwise.decoding.timestamp_rules import speech_rules
from headwise.text.speech_tokens import SpeechTokens

# Ours and theirs number tokens differently; here both have end 3 below all text, and times from 30 on.
TOKENS = SpeechTokens(no_timestamps=29, timestamps=30, suppress=[7, 8], suppress_first=[3, 9])
VOCAB = 81


def allowed(history: list[int], logits: torch.Tensor, timestamps: bool = True) -> set[int]:
    changed = logits.clone()[None]
    for rule in speech_rules(TOKENS, timestamps):
        rule(changed, len(history), torch.tensor([history], dtype=torch.long).view(1, -1))
    return set(changed[0].isfinite().nonzero().squeeze(1).tolist())


TEXT, TIMES = set(range(4, 29)) - {7, 8}, set(range(30, VOCAB))


def likely_text() -> torch.Tensor:
    logits = torch.zeros(VOCAB)
    logits[10] = 20.0
    return logits


def test_a_window_begins_with_a_time_in_its_first_second() -> None:
    assert allowed([], likely_text()) == set(range(30, 81))


def test_text_follows_the_time_that_opens_a_segment() -> None:
    assert allowed([30], likely_text()) >= TEXT
    assert not allowed([30], likely_text()) & TIMES


def test_after_the_time_that_closes_a_segment_comes_a_time_or_the_end() -> None:
    found = allowed([30, 10, 45], torch.zeros(VOCAB))
    assert found == set(range(45, VOCAB))  # all times together are likelier than the end
    sure_end = torch.zeros(VOCAB)
    sure_end[3] = 20.0
    assert allowed([30, 10, 45], sure_end) == {3, *range(45, VOCAB)}


def test_times_do_not_go_back() -> None:
    assert not allowed([30, 10, 45, 45, 11], likely_text()) & set(range(30, 46))


def test_a_time_is_written_where_all_times_together_are_likelier_than_any_word() -> None:
    assert allowed([30, 10], torch.zeros(VOCAB)) <= TIMES
    assert allowed([30, 10], likely_text()) >= TEXT


def test_without_timestamps_there_are_none() -> None:
    assert allowed([], likely_text(), timestamps=False) == TEXT - {9} | {0, 1, 2}
    assert allowed([10], likely_text(), timestamps=False) == TEXT | {0, 1, 2, 3}


@pytest.mark.parametrize("seed", range(6))
def test_the_rules_are_those_of_transformers(seed: int) -> None:
    from transformers import GenerationConfig
    from transformers.generation.logits_process import WhisperTimeStampLogitsProcessor

    # In their numbering text is below the end, 27, and times begin at 30.
    config = GenerationConfig(
        no_timestamps_token_id=29, eos_token_id=27, bos_token_id=27, max_initial_timestamp_index=50
    )
    theirs = WhisperTimeStampLogitsProcessor(config, begin_index=1)
    swap = torch.arange(VOCAB)
    swap[3], swap[27] = 27, 3
    generator = torch.Generator().manual_seed(seed)
    ours = speech_rules(SpeechTokens(no_timestamps=29, timestamps=30), True)
    for history in ([], [30], [32, 5], [32, 5, 40], [32, 5, 40, 40], [32, 5, 40, 41, 6], [32, 5, 40, 41, 6, 60]):
        logits = torch.randn(1, VOCAB, generator=generator) * 3
        expected = theirs(torch.tensor([[28, *history]]), logits.clone())
        found = logits[:, swap].clone()
        for rule in ours:
            rule(found, len(history), torch.tensor([history], dtype=torch.long).view(1, -1))
        assert torch.equal(found[:, swap].isfinite()[:, 4:], expected.isfinite()[:, 4:]), history
