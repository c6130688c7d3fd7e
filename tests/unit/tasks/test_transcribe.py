"""The task transcribe: training from a recipe, transcripts, evaluation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_sounds import write_recordings, write_sound_recipe
from sounds import noise, save, tone

from headwise.bundle.directory import open_bundle
from headwise.config.recipe import load_recipe
from headwise.decoding.transcriber import Transcriber, compression
from headwise.errors import DataError, UsageError
from headwise.tasks.sound_data import window_of
from headwise.tasks.transcribe import TASK
from headwise.workflows.load import load
from headwise.workflows.train import train


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("speech")
    recipe, base = load_recipe(write_sound_recipe(folder, steps=24))
    return train(recipe, base, folder / "run").model


def test_evaluation_compares_with_the_texts_of_a_table(model: Path, tmp_path: Path) -> None:
    scores = TASK.evaluate(open_bundle(model), sounds=str(write_recordings(tmp_path / "test", 4, seed=5)))
    assert "norm:" in scores.lines()[0]
    assert len(scores.translations) == 4
    assert scores.as_dict()["recordings"] == 4
    with pytest.raises(UsageError, match="--sounds TABLE only"):
        TASK.evaluate(open_bundle(model), source="a.txt")


def test_a_table_is_evaluated_with_the_columns_of_the_training(model: Path, tmp_path: Path) -> None:
    table = write_recordings(tmp_path, 2, seed=5)
    table.write_text(table.read_text().replace("file_name,transcription", "sound,words"))
    bundle = open_bundle(model)
    trained = replace(bundle, card={**bundle.card, "recipe": {"data": {"columns": ["sound", "words"]}}})
    assert TASK.evaluate(trained, sounds=str(table)).as_dict()["recordings"] == 2


@pytest.mark.slow
def test_a_small_model_learns_to_tell_tones_apart(tmp_path: Path) -> None:
    recipe, base = load_recipe(write_sound_recipe(tmp_path, steps=120))
    trained = train(recipe, base, tmp_path / "run").model
    scores = TASK.evaluate(open_bundle(trained), sounds=str(write_recordings(tmp_path / "test", 12, seed=5)))
    assert scores.rates.wer < 30


def test_a_sound_gets_the_same_text_alone_in_a_batch_and_as_samples(model: Path, tmp_path: Path) -> None:
    write_recordings(tmp_path, 5, seed=3)
    opened = load(model)
    assert isinstance(opened, Transcriber)
    files = [tmp_path / f"{number}.wav" for number in range(5)]
    together = [transcript.text for transcript in opened.transcribe(files, beam=2)]
    assert together == [opened.transcribe([file], beam=2)[0].text for file in files]
    assert together[0] == str(opened.transcribe(files[0], beam=2))
    assert all(transcript.segments[0].confidence <= 1 for transcript in opened.transcribe(files))


def test_long_sound_is_read_in_windows_and_silence_has_no_text(model: Path) -> None:
    opened = load(model)
    silence = np.zeros(20_000, np.float32)
    long = np.concatenate([part for hertz in (300, 900, 2500) for part in (tone(0.3, hertz), silence)])
    transcript = opened.transcribe([long])[0]
    assert transcript.seconds == pytest.approx(len(long) / 16_000, abs=0.11)
    assert all(a.end <= b.start + 1e-6 for a, b in zip(transcript.segments, transcript.segments[1:], strict=False))
    assert repr(transcript).startswith("Transcript(")
    hours = opened.transcribe([np.zeros(16_000 * 120, np.float32)])[0]
    assert (hours.text, hours.segments, hours.silence) == ("", (), 120.0)


def test_what_the_model_cannot_do_is_refused_before_any_work(model: Path, tmp_path: Path) -> None:
    opened = load(model)
    sound = save(tmp_path / "a.wav", noise(0.5))
    for options in ({"task": "translate"}, {"timestamps": True}, {"language": "fr"}, {"beam": 0}):
        with pytest.raises(UsageError):
            opened.transcribe([sound], **options)
    with pytest.raises(UsageError, match="a list of sounds"):
        opened.transcribe(noise(0.5))
    with pytest.raises(UsageError, match="mono float32"):
        opened.transcribe([np.zeros((2, 100), np.float32)])
    with pytest.raises(DataError, match="no such file"):
        opened.transcribe([sound, tmp_path / "none.wav"])
    with pytest.raises(UsageError, match="unknown engine"):
        TASK.open(open_bundle(model), "abacus")


def test_check_reports_what_cannot_be_learned_from(tmp_path: Path) -> None:
    recipe_file = write_sound_recipe(tmp_path, recordings=8)
    save(tmp_path / "train/0.wav", noise(3.0))
    (tmp_path / "train/1.wav").write_bytes(b"x")
    recipe, base = load_recipe(recipe_file)
    assert window_of(recipe, 8) == 1.0
    examined = TASK.examine(recipe, base)
    found = {finding.name: finding.count for finding in examined.report.findings}
    assert (found["long"], found["unreadable"]) == (1, 1)
    assert examined.report.counts.dropped == {"long": 1, "unreadable": 1}
    assert examined.facts.lines == 6
    choices = {choice.key: choice.value for choice in TASK.automatic(recipe, examined.facts)}
    assert choices["tokenizer.kind"] == "char"
    assert choices["training.best"] == "wer"


def test_text_that_repeats_itself_is_compressed_well() -> None:
    assert compression("again and again and again and again and again and again and again and again") > 2.4
    assert compression("And so my fellow Americans ask not what your country can do for you") < 1.5
    assert compression("") == 0
