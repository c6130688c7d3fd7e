from __future__ import annotations

from pathlib import Path

import pytest
from sounds import tone, wav_bytes

from headwise.bundle.directory import open_bundle
from headwise.errors import DataError
from headwise.sound.reading import TooLong
from headwise.tasks.served_transcriber import ServedTranscriber
from headwise.tasks.transcribe import TASK

SECOND = wav_bytes(data=(tone(1.0) * 32_000).astype("<i2").tobytes())


@pytest.fixture(scope="module")
def served(speech_model: Path) -> ServedTranscriber:
    return TASK.serve("name", open_bundle(speech_model), "torch", "int8")


def test_a_sound_in_memory_is_transcribed_as_its_samples(served: ServedTranscriber) -> None:
    served.probe()
    assert served.facts.reads == "sound"
    sound = served.read(SECOND, 1.5)
    assert sound.seconds == pytest.approx(1.0)
    (found,) = served.transcribe([sound], beam=1)
    samples = (tone(1.0) * 32_000).astype("<i2").astype("float32") / 32_768
    assert found.text == served.opened.transcribe([samples], beam=1)[0].text
    assert "Attention over sound" in served.look(SECOND, None)


def test_a_sound_is_refused_by_its_header_or_where_it_is_damaged(served: ServedTranscriber) -> None:
    with pytest.raises(TooLong, match=r"is 1 s long, but at most 0\.5 s"):
        served.read(SECOND, 0.5)
    with pytest.raises(DataError, match="is cut off"):
        served.read(wav_bytes(declared=10_000), 60)
    with pytest.raises(DataError, match="the sound: is not a sound file"):
        served.read(b"text", 60)
