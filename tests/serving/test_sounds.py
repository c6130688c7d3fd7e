"""Speech models of a server transcribe as offline; sounds that lie are refused at once."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import pytest
import soundfile
from running import Running
from sounds import noise, tone, wav_bytes

from headwise.sound.reading import SoundBytes
from headwise.workflows.load import load


def encoded(samples: Any, kind: str = "WAV", rate: int = 16_000) -> bytes:
    stream = io.BytesIO()
    soundfile.write(stream, samples, rate, format=kind)
    return stream.getvalue()


SOUNDS = [encoded(tone(0.3 + 0.1 * number, 300.0 * (1 + number))) for number in range(4)]


def test_sounds_are_transcribed_as_offline_also_by_many_clients_at_once(
    server: Running, models: dict[str, Path]
) -> None:
    offline = load(models["tones"]).transcribe([SoundBytes(sound) for sound in SOUNDS])

    def ask(sound: bytes) -> Any:
        return server.upload("/transcribe", [("file", sound)], model="tones").json

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, SOUNDS))
    assert [one["text"] for one in found] == [one.text for one in offline]
    for answer, expected in zip(found, offline, strict=True):
        assert answer["model"] == "tones"
        assert answer["seconds"] == pytest.approx(expected.seconds, abs=0.01)
        assert [one["text"] for one in answer["segments"]] == [one.text.strip() for one in expected.segments]
    assert server.metric("headwise_sound_seconds_total", model="tones") > 1
    flac = server.upload("/transcribe", [("file", encoded(tone(0.3, 300.0), "FLAC"))], format="text", beam="1")
    assert (flac.status, flac.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    for kind, begins in (("srt", b""), ("vtt", b"WEBVTT")):
        assert server.upload("/transcribe", [("file", SOUNDS[0])], format=kind).body.startswith(begins)
    silence = server.upload("/transcribe", [("file", encoded(0 * noise(0.5)))]).json
    assert (silence["text"], silence["segments"]) == ("", [])


def test_the_openai_client_transcribes(server: Running, models: dict[str, Path]) -> None:
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none needed", max_retries=0)
    (offline,) = load(models["tones"]).transcribe([SoundBytes(SOUNDS[1])])

    def ask(**options: Any) -> Any:
        return client.audio.transcriptions.create(model="tones", file=("a.wav", SOUNDS[1]), **options)

    assert ask().text == offline.text
    assert ask(response_format="text").strip() == offline.text
    assert ask(response_format="srt").count("-->") == len(offline.segments)
    assert ask(response_format="vtt").startswith("WEBVTT")
    verbose = ask(response_format="verbose_json", timestamp_granularities=["segment"], language="en", temperature=0)
    assert (verbose.text, verbose.language) == (offline.text, "english")
    assert float(verbose.duration) == pytest.approx(offline.seconds, abs=0.01)
    assert [one.text for one in verbose.segments] == [one.text for one in offline.segments]
    for options, part in (
        ({"prompt": "tones"}, "prompt is not supported"),
        ({"stream": True}, "stream is not supported"),
        ({"timestamp_granularities": ["word"]}, "no times of words"),
        ({"language": "fr"}, "the model knows en only"),
        ({"response_format": "diarized_json"}, "response_format"),
    ):
        with pytest.raises(openai.BadRequestError, match=part):
            ask(**options)
    with pytest.raises(openai.NotFoundError, match="there are tones"):
        client.audio.transcriptions.create(model="words", file=("a.wav", SOUNDS[1]))
    assert "tones" in {model.id for model in client.models.list()}


LIES: list[tuple[bytes, int, str]] = [
    (b"", 400, "is not a sound file that can be read"),
    (b"\x89PNG\r\n\x1a\n", 400, "is not a sound file that can be read"),
    (wav_bytes(declared=2_000_000), 400, "is cut off: its header promises 2,000,000 bytes"),
    (wav_bytes(rate=0), 400, "the sound"),
    (wav_bytes(channels=200), 400, "the sound"),
    (wav_bytes(rate=4_000_000_000), 400, "the sound"),
    (wav_bytes(data=b""), 400, "has no samples"),
    (wav_bytes(rate=1_000, bits=8, data=bytes([128]) * 601_000), 413, "601 s long, but at most 600 s"),
    (encoded(noise(2.0), "FLAC")[:9_000], 400, "the sound"),
]


def test_sounds_that_lie_are_refused_and_cost_no_memory(server: Running) -> None:
    assert server.upload("/transcribe", [("file", SOUNDS[0])]).status == 200
    before = server.memory()
    for content, status, part in LIES * 2:
        answer = server.upload("/transcribe", [("file", content)])
        assert (answer.status, part in answer.json["error"]) == (status, True), (part, answer.json)
    assert server.memory() - before < 40 * 2**20
    for files, fields, status, part in (
        ([], {}, 400, "missing file parameter"),
        ([("file", SOUNDS[0])] * 2, {}, 400, "Too many files"),
        ([("file", SOUNDS[0])], {"beam": "11"}, 400, "beam: Input should be less than or equal to 10"),
        ([("file", SOUNDS[0])], {"timestamps": "true"}, 400, "the model has no timestamps"),
        ([("file", SOUNDS[0])], {"model": "words"}, 400, "not of the task 'transcribe'"),
    ):
        answer = server.upload("/transcribe", files, **fields)
        assert (answer.status, part in answer.json["error"]) == (status, True), answer.json
    for path in ("/transcribe", "/v1/audio/transcriptions"):
        assert server.ask("POST", path, b"", {"Content-Length": str(25 * 2**20 + 1)}).status == 413
    assert server.ask("POST", "/transcribe", {"file": "a"}).status == 415
    assert server.ask("POST", "/v1/audio/transcriptions", {"file": "a"}).status == 415
    assert server.ask("GET", "/health/ready").status == 200
