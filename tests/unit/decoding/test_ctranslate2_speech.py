"""CTranslate2 hears what torch hears: models of others, and those that are trained here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fixtures_whisper import publish_whisper
from small_sounds import write_recordings, write_sound_recipe

from headwise.bundle.directory import open_bundle
from headwise.config.recipe import load_recipe
from headwise.decoding.ctranslate2_speech import CTranslate2Speech
from headwise.decoding.speech_options import SpeechSearch
from headwise.decoding.torch_speech import TorchSpeech
from headwise.errors import UsageError
from headwise.tasks.transcribe import TASK
from headwise.workflows.export import export_model
from headwise.workflows.import_model import import_model
from headwise.workflows.train import train


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    publish_whisper(folder / "hub", multilingual=False)
    import_model(folder / "hub", folder / "model")
    return folder / "model"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    recipe, base = load_recipe(write_sound_recipe(folder, steps=24))
    return train(recipe, base, folder / "run").model


def sounds(count: int = 4) -> list[np.ndarray]:
    return [np.random.default_rng(n).normal(size=(100, 20)).astype(np.float32) for n in range(count)]


@pytest.mark.parametrize("timestamps", [False, True])
def test_a_published_model_writes_the_tokens_of_torch(published: Path, timestamps: bool) -> None:
    bundle = open_bundle(published)
    slow, fast = TASK.open(bundle, "torch"), TASK.open(bundle, "ctranslate2", precision="float32")
    assert isinstance(fast.engine, CTranslate2Speech)
    prompts = [slow.tokens.prompt(None, "transcribe", timestamps)] * 4
    asked = SpeechSearch(beam=1, timestamps=timestamps)
    ours, theirs = (opened.engine.search(sounds(), prompts, asked) for opened in (slow, fast))
    for one, other in zip(ours, theirs, strict=True):
        assert other.tokens == one.tokens
        assert other.stopped == one.stopped
        if one.stopped != "loop":  # whose mean is that of what is kept, which CTranslate2 does not tell
            assert other.mean_log_prob == pytest.approx(one.mean_log_prob, abs=2e-3)
        assert other.no_speech == pytest.approx(one.no_speech, abs=1e-4)


def test_a_model_that_was_trained_here_writes_the_same_text(trained: Path, tmp_path: Path) -> None:
    write_recordings(tmp_path, 6, seed=3)
    files = [tmp_path / f"{number}.wav" for number in range(6)]
    bundle = open_bundle(trained)
    slow, fast = TASK.open(bundle, "torch"), TASK.open(bundle)
    assert (slow.engine.name, fast.engine.name) == ("torch", "ctranslate2")
    for beam in (1, 3):
        ours, theirs = (opened.transcribe(files, beam=beam) for opened in (slow, fast))
        assert [one.text for one in ours] == [one.text for one in theirs]
        assert any(one.text for one in ours)
    assert [fast.transcribe([file], beam=3)[0].text for file in files] == [one.text for one in theirs]


def test_samples_are_those_of_torch_whatever_the_engine(published: Path) -> None:
    bundle = open_bundle(published)
    slow, fast = TASK.open(bundle, "torch"), TASK.open(bundle, "ctranslate2", precision="float32")
    prompts = [slow.tokens.prompt(None, "transcribe", True)] * 2
    asked = SpeechSearch(temperature=0.8, best_of=2, timestamps=True, seed=3)
    ours, theirs = (opened.engine.search(sounds(2), prompts, asked) for opened in (slow, fast))
    assert [one.tokens for one in ours] == [one.tokens for one in theirs]


def test_an_export_is_read_back_with_its_tokens_in_our_order(published: Path, trained: Path, tmp_path: Path) -> None:
    for number, model in enumerate((published, trained)):
        export_model(model, tmp_path / f"out{number}", precision="float32")
        import_model(tmp_path / f"out{number}", tmp_path / f"back{number}")
        before, after = (TASK.open(open_bundle(path), "torch") for path in (model, tmp_path / f"back{number}"))
        assert before.tokens == after.tokens
        prompts = [before.tokens.prompt(None, "transcribe", False)] * 2
        ours, theirs = (one.engine.search(sounds(2), prompts, SpeechSearch(beam=2)) for one in (before, after))
        assert [one.tokens for one in ours] == [one.tokens for one in theirs]
        assert [one.mean_log_prob for one in ours] == pytest.approx([one.mean_log_prob for one in theirs], abs=1e-6)


def test_languages_are_detected_by_torch_where_ctranslate2_cannot(tmp_path: Path) -> None:
    publish_whisper(tmp_path / "hub")
    import_model(tmp_path / "hub", tmp_path / "model")
    bundle = open_bundle(tmp_path / "model")
    assert isinstance(TASK.open(bundle).engine, TorchSpeech)
    with pytest.raises(UsageError, match="detects languages only"):
        TASK.open(bundle, "ctranslate2")
