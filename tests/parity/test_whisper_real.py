"""The real Whisper tiny.en, in CTranslate2's form, hears what CTranslate2 hears with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headwise.interop.ctranslate2.readers.whisper import READS
from headwise.sound.features import log_mel
from headwise.sound.reading import read_sound
from headwise.workflows.import_model import import_model
from headwise.workflows.load import load


def test_real_speech_is_transcribed_word_for_word_as_by_ctranslate2(
    tmp_path: Path, whisper_tiny: Path, corpora: Path
) -> None:
    sound = corpora / "speech/jfk.wav"
    if not sound.is_file():
        pytest.skip("needs speech/jfk.wav in the folder that HEADWISE_DATA names")
    import ctranslate2

    assert READS == ("WhisperSpec",)
    import_model(whisper_tiny, tmp_path / "tiny.en")
    opened = load(tmp_path / "tiny.en")
    features = log_mel(read_sound(sound, most_seconds=60), frames=3000)
    theirs = ctranslate2.models.Whisper(str(whisper_tiny), compute_type="float32")
    view = ctranslate2.StorageView.from_array(np.ascontiguousarray(features.T[None]))
    for timestamps in (False, True):
        prompt = ["<|startoftranscript|>", *([] if timestamps else ["<|notimestamps|>"])]
        ids = theirs.generate(view, [prompt], beam_size=1)[0].sequences_ids[0]
        offset = 50_256  # the end of a text: what is above is not text
        expected = opened.tokenizer.decode([number + 4 for number in ids if number < offset])
        found = opened.transcribe([sound], beam=1, timestamps=timestamps)[0]
        assert found.text == " ".join(expected.split())
        assert found.text.startswith("And so my fellow Americans")
