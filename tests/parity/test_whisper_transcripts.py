"""Searches over sound find what transformers' generate finds, with timestamps and without."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from fixtures_whisper import columns, publish_whisper

from headwise.bundle.weights import open_model
from headwise.decoding.speech_options import SpeechSearch
from headwise.decoding.torch_speech import TorchSpeech
from headwise.tasks.transcribe import TASK
from headwise.workflows.import_model import import_model


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("timestamps", [False, True])
def test_greedy_search_writes_the_tokens_of_generate(tmp_path: Path, seed: int, timestamps: bool) -> None:
    theirs = publish_whisper(tmp_path / "hub", seed)
    import_model(tmp_path / "hub", tmp_path / "ours")
    bundle, _, _ = open_model(tmp_path / "ours")
    opened = TASK.open(bundle, "torch")
    tokens, engine = opened.tokens, opened.engine
    end, vocab = theirs.config.eos_token_id, theirs.config.vocab_size
    if not timestamps:  # we never write a time that was not asked for; a random model of theirs would
        theirs.generation_config.suppress_tokens = [*theirs.generation_config.suppress_tokens, *range(end + 1, vocab)]
    place = columns(theirs.config.vocab_size, theirs.config.eos_token_id)
    sounds = [np.random.default_rng(n).normal(size=(100, 20)).astype(np.float32) for n in range(3)]
    prompt = tokens.prompt("de", "transcribe", timestamps)
    found = engine.search(sounds, [prompt] * 3, SpeechSearch(beam=1, timestamps=timestamps))
    for sound, spoken in zip(sounds, found, strict=True):
        written = theirs.generate(
            torch.from_numpy(sound.T[None].copy()), language="de", task="transcribe", return_timestamps=timestamps,
            max_new_tokens=16,
        )[0].tolist()  # fmt: skip
        expected = [place[number] for number in written if number != theirs.config.eos_token_id]
        assert list(spoken.tokens[: len(expected)]) == expected[: len(spoken.tokens)]
        assert spoken.no_speech is not None
        assert 0 <= spoken.no_speech <= 1


def test_a_window_gets_the_same_alone_and_in_a_batch_and_languages_are_detected(tmp_path: Path) -> None:
    publish_whisper(tmp_path / "hub")
    import_model(tmp_path / "hub", tmp_path / "ours")
    bundle, network, _ = open_model(tmp_path / "ours")
    tokens = TASK.open(bundle).tokens
    engine = TorchSpeech(network, tokens)
    sounds = [np.random.default_rng(n).normal(size=(100, 20)).astype(np.float32) for n in range(4)]
    prompt = tokens.prompt("en", "transcribe", timestamps=True)
    for asked in (SpeechSearch(beam=4, timestamps=True), SpeechSearch(temperature=0.7, best_of=3, timestamps=True)):
        together = engine.search(sounds, [prompt] * 4, asked)
        alone = [engine.search([sound], [prompt], asked)[0] for sound in sounds]
        assert [spoken.tokens for spoken in together] == [spoken.tokens for spoken in alone]
        assert [s.mean_log_prob for s in together] == pytest.approx([s.mean_log_prob for s in alone], abs=1e-4)
    for chances in engine.languages(sounds):
        assert set(chances) == {"en", "de", "zh"}
        assert sum(chances.values()) == pytest.approx(1)
