from __future__ import annotations

import pytest

from headwise.decoding.transcript import Segment, Transcript
from headwise.serving.routes.transcription_model import Form, transcript_response

TRANSCRIPT = Transcript("a b", (Segment(0.0, 1.5, " a b", 0.9),), "en", 1.5)


@pytest.mark.parametrize(
    ("form", "media", "body"),
    [
        ("json", "application/json", '{"text":"a b"}'),
        ("text", "text/plain; charset=utf-8", "a b\n"),
        ("srt", "application/x-subrip", "1\n00:00:00,000 --> 00:00:01,500\na b\n"),
        ("vtt", "text/vtt; charset=utf-8", "WEBVTT\n\n00:00:00.000 --> 00:00:01.500\na b\n"),
    ],
)
def test_a_transcript_is_sent_in_the_form_that_is_asked_for(form: Form, media: str, body: str) -> None:
    response = transcript_response(TRANSCRIPT, form, {"text": "a b"})
    assert (response.headers["content-type"], bytes(response.body).decode()) == (media, body)
