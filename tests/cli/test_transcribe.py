"""`headwise transcribe`, as a user has it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fixtures_whisper import publish_whisper
from sounds import noise, save
from verbs import run

from headwise.workflows.import_model import import_model


@pytest.fixture(scope="module")
def whisper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whisper")
    publish_whisper(folder / "hub")
    import_model(folder / "hub", folder / "model")
    return folder / "model"


def test_each_file_gets_a_line_and_silence_an_empty_one(whisper: Path, tmp_path: Path) -> None:
    save(tmp_path / "a.wav", noise(1.5))
    save(tmp_path / "b.flac", 0 * noise(1.0))
    done = run(
        "transcribe", "--model", whisper, "--beam", 1, "--language", "en", tmp_path / "a.wav", tmp_path / "b.flac"
    )
    assert done.code == 0
    assert len(done.lines) == 2
    assert done.lines[1] == ""


def test_json_and_subtitles_have_times(whisper: Path, tmp_path: Path) -> None:
    file = save(tmp_path / "a.wav", noise(2.5))
    (line,) = run("transcribe", "--model", whisper, "--beam", 1, "--json", file).lines
    content = json.loads(line)
    assert content["language"] in ("en", "de", "zh")
    assert content["seconds"] == pytest.approx(2.5, abs=0.11)
    for segment in content["segments"]:
        assert 0 <= segment["start"] <= segment["end"] <= 2.6
    assert run("transcribe", "--model", whisper, "--beam", 1, "--vtt", file).out.startswith("WEBVTT")
    out = tmp_path / "a.srt"
    assert run("transcribe", "--model", whisper, "--beam", 1, "--srt", file, "--output", out).code == 0
    assert out.is_file()


def test_wrong_calls_are_one_line(whisper: Path, tmp_path: Path) -> None:
    file = save(tmp_path / "a.wav", noise(0.5))
    (tmp_path / "bad.wav").write_bytes(b"no sound")
    for arguments, problem in (
        ((file,), "no model"),
        (("--model", whisper, "--srt", "--json", file), "one of --json"),
        (("--model", whisper, "--srt", file, file), "one file"),
        (("--model", whisper, file, tmp_path / "bad.wav"), "bad.wav: is not a sound file"),
        (("--model", whisper, "--language", "fr", file), "does not know the language 'fr'"),
    ):
        done = run("transcribe", *arguments)
        assert done.code == 2
        assert problem in done.err
        assert done.out == ""


def test_a_cut_file_is_transcribed_with_a_warning(whisper: Path, tmp_path: Path) -> None:
    file = save(tmp_path / "a.wav", noise(3.0))
    file.write_bytes(file.read_bytes()[:60_000])
    done = run("transcribe", "--model", whisper, "--beam", 1, file)
    assert done.code == 0
    assert "warning" in done.err
    assert "cut off" in done.err


def test_look_shows_attention_over_the_sound(whisper: Path, tmp_path: Path) -> None:
    file = save(tmp_path / "a.wav", noise(0.7))
    done = run("look", "--model", whisper, file, "--beam", 1, "--output", tmp_path / "a.html")
    assert (done.code, (tmp_path / "a.html").is_file()) == (0, True)
    done = run("look", "--model", whisper, file, "--target", "so", "--what", "alignment")
    assert done.code == 0
    assert done.lines[-1].endswith("⟨end⟩")
    silent = save(tmp_path / "b.wav", 0 * noise(0.7))
    assert "only silence" in run("look", "--model", whisper, silent, "--output", tmp_path / "b.png").err
    assert "this model does not read text" in run("look", "--model", whisper, file, "--between", "a", "b").err
