"""Transcripts as JSON and subtitles."""

from __future__ import annotations

import json

from headwise.decoding.transcript import Segment, Transcript, clock, subtitles

HEARD = Transcript(
    "And so. Ask not.",
    (Segment(0.0, 1.5, " And so.", 0.91234567, 0.02), Segment(3661.2, 3662.0, " Ask --> not.", 0.5)),
    "en", 3700.0, 12.5, "a.wav",
)  # fmt: skip


def test_json_has_times_and_confidence() -> None:
    content = json.loads(json.dumps(HEARD.as_dict()))
    assert content["segments"][0] == {
        "start": 0.0, "end": 1.5, "text": "And so.", "confidence": 0.9123, "no_speech": 0.02, "temperature": 0.0
    }  # fmt: skip
    assert (content["file"], content["seconds"], content["silence"], content["language"]) == (
        "a.wav",
        3700.0,
        12.5,
        "en",
    )


def test_subtitles_have_one_cue_per_segment() -> None:
    assert subtitles(HEARD, "srt") == (
        "1\n00:00:00,000 --> 00:00:01,500\nAnd so.\n\n2\n01:01:01,200 --> 01:01:02,000\nAsk -> not.\n"
    )
    assert subtitles(HEARD, "vtt").startswith("WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nAnd so.\n")
    assert clock(59.9996) == "00:01:00.000"
