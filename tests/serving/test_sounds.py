"""Speech models of a server transcribe as offline; sounds that lie are refused at once."""

from __future__ import annotations

import io
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest
import soundfile
from rigged import held
from running import RIGGED, Running, serving
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
        ({"timestamp_granularities": ["word", "segment"]}, "no times of words"),
        ({"include": ["logprobs", "other"]}, "include\\[\\] is not supported"),
        ({"language": "fr"}, "the model knows en only"),
        ({"response_format": "diarized_json"}, "response_format"),
    ):
        with pytest.raises(openai.BadRequestError, match=part):
            ask(**options)
    assert ask(timestamp_granularities=["segment", "segment"]).text == offline.text
    for file in (SOUNDS[1], bytes(1_000_000)):
        with pytest.raises(openai.BadRequestError, match="use /transcribe with task=translate"):
            client.post("/audio/translations", files={"file": file}, cast_to=object)
    with pytest.raises(openai.NotFoundError, match="there are tones"):
        client.audio.transcriptions.create(model="words", file=("a.wav", SOUNDS[1]))
    assert "tones" in {model.id for model in client.models.list()}


LONG = encoded(np.concatenate([tone(0.8, 300.0 * (1 + number % 5)) for number in range(6)]))  # several windows


def events(body: bytes) -> list[dict[str, Any]]:
    return [json.loads(part.removeprefix(b"data: ")) for part in body.split(b"\n\n") if part]


def test_a_stream_has_the_segments_of_the_whole_transcript_one_by_one(server: Running) -> None:
    whole = server.upload("/transcribe", [("file", LONG)]).json
    assert len(whole["segments"]) >= 3
    answer = server.upload("/transcribe", [("file", LONG)], stream="true")
    assert answer.headers["content-type"].startswith("text/event-stream")
    *segments, last = events(answer.body)
    assert [one["segment"] for one in segments] == whole["segments"]
    assert last == {"done": True, **whole}
    silence = events(server.upload("/transcribe", [("file", encoded(0 * noise(0.5)))], stream="true").body)
    assert [(one["done"], one["text"]) for one in silence] == [(True, "")]
    for content, status, part in LIES:  # what is wrong before the first segment has a status of its own
        refused = server.upload("/transcribe", [("file", content)], stream="true")
        assert (refused.status, part in refused.json["error"]) == (status, True)
    refused = server.upload("/transcribe", [("file", LONG)], stream="true", format="srt")
    assert (refused.status, "a stream is JSON" in refused.json["error"]) == (400, True)


def test_a_stream_tells_of_a_segment_at_once_and_ends_with_its_client(models: dict[str, Path], flag: Path) -> None:
    with serving(f"tones={models['tones']}", "later", flag, script=RIGGED) as running:
        flag.touch()  # the engine does not answer the second search of a request, but can be stopped
        for _ in range(6):  # more than the queue takes
            connection, response = running.begin_upload("/transcribe", [("file", LONG)], stream="true")
            assert b'"segment"' in response.readline()
            while not held(flag).exists():  # else it would count the next request's first search as the second
                pass
            assert running.metric("headwise_active_jobs", model="tones") == 1
            response.close()
            connection.close()
            while running.metric("headwise_active_jobs", model="tones"):
                pass
        flag.unlink()
        assert events(running.upload("/transcribe", [("file", LONG)], stream="true").body)[-1]["done"]


def test_look_shows_the_attention_over_a_sound(server: Running) -> None:
    page = server.upload("/look", [("file", SOUNDS[1])], model="tones")
    assert (page.status, b"Attention over sound" in page.body) == (200, True)
    assert "img-src data:" in page.headers["content-security-policy"]
    before = server.memory()
    for content, status, part in LIES:
        answer = server.upload("/look", [("file", content)], model="tones")
        part = part.replace("at most 600 s", "at most 60 s")
        assert (answer.status, part in answer.json["error"]) == (status, True), (part, answer.json)
    assert server.memory() - before < 40 * 2**20
    silent = server.upload("/look", [("file", encoded(0 * noise(0.5)))], model="tones")
    assert (silent.status, silent.json["error"]) == (400, "the sound has no sound in it, only silence")
    wordy = server.upload("/look", [("file", SOUNDS[1])], model="tones", target="eins " * 30)
    assert (wordy.status, "more than the model can write" in wordy.json["error"]) == (400, True)
    numbers = server.upload("/look", [("file", SOUNDS[1])], model="tones", format="json")
    assert (numbers.status, "ask for its page" in numbers.json["error"]) == (400, True)
    assert server.ask("POST", "/look", {"text": "a", "model": "tones"}).status == 400
    assert server.ask("POST", "/look", b"", {"Content-Length": str(10 * 2**20 + 1)}).status == 413


def float_wav(value: float) -> bytes:
    return wav_bytes(kind=3, bits=32, data=np.full(100, value, "<f4").tobytes())


def silence(frames: int, channels: int) -> bytes:
    """A FLAC file of a few bytes whose header promises much at 384 kHz."""
    content = bytearray(encoded(np.zeros((384_000, channels)), "FLAC", 384_000))
    content[22:26] = frames.to_bytes(4, "big")  # the lower 32 of 36 bits
    return bytes(content)


LIES: list[tuple[bytes, int, str]] = [
    (b"", 400, "is not a sound file that can be read"),
    (b"\x89PNG\r\n\x1a\n", 400, "is not a sound file that can be read"),
    (wav_bytes(declared=2_000_000), 400, "is cut off: its header promises 2,000,000 bytes"),
    (wav_bytes(rate=0), 400, "the sound"),
    (wav_bytes(channels=200), 400, "the sound"),
    (wav_bytes(rate=4_000_000_000), 400, "the sound"),
    (wav_bytes(data=b""), 400, "the sound has no samples, as its header says"),
    (float_wav(np.nan), 400, "the sound has a sample that is NaN or infinite, at 0.000 s"),
    (float_wav(1e38), 400, "the sound has samples up to 1e+38, but sound is between -1 and 1"),
    (wav_bytes(rate=1_000, bits=8, data=bytes([128]) * 601_000), 413, "601 s long, but at most 600 s"),
    (silence(16_000_000, 8), 413, "has 128,000,000 samples in 8 channels, but at most 120,000,000 are read"),
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
        ([("file", SOUNDS[0])], {"language": "fr"}, 400, "the model knows en only, not 'fr'"),
        ([("file", SOUNDS[0])], {"task": "translate"}, 400, "and does not translate"),
    ):
        answer = server.upload("/transcribe", files, **fields)
        assert (answer.status, part in answer.json["error"]) == (status, True), answer.json
        assert "--" not in answer.json["error"], "an option of the command line"
    for path in ("/transcribe", "/v1/audio/transcriptions"):
        assert server.ask("POST", path, b"", {"Content-Length": str(25 * 2**20 + 1)}).status == 413
    assert server.ask("POST", "/transcribe", {"file": "a"}).status == 415
    assert server.ask("POST", "/v1/audio/transcriptions", {"file": "a"}).status == 415
    assert server.ask("GET", "/health/ready").status == 200
