"""The real Whisper tiny.en, in CTranslate2's form, hears what CTranslate2 and transformers hear with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from headwise.interop.ctranslate2.readers.whisper import READS
from headwise.sound.features import log_mel
from headwise.sound.reading import read_sound
from headwise.workflows.export import export_model
from headwise.workflows.import_model import import_model
from headwise.workflows.load import load

END = 50_256  # the end of a text: what is above is not text


def test_real_speech_is_transcribed_word_for_word_as_by_ctranslate2_and_transformers(
    tmp_path: Path, whisper_tiny: Path, corpora: Path
) -> None:
    sound = corpora / "speech/jfk.wav"
    if not sound.is_file():
        pytest.skip("needs speech/jfk.wav in the folder that HEADWISE_DATA names")
    import ctranslate2
    from transformers import WhisperForConditionalGeneration

    assert READS == ("WhisperSpec",)
    import_model(whisper_tiny, tmp_path / "tiny.en")
    export_model(tmp_path / "tiny.en", tmp_path / "hub", to="huggingface")
    features = np.ascontiguousarray(log_mel(read_sound(sound, most_seconds=60), frames=3000).T[None])
    ctranslate2_model = ctranslate2.models.Whisper(str(whisper_tiny), compute_type="float32")
    transformers_model = WhisperForConditionalGeneration.from_pretrained(tmp_path / "hub").eval()
    engines = [load(tmp_path / "tiny.en", engine=name, precision="float32") for name in ("torch", "ctranslate2")]
    for timestamps in (False, True):
        prompt = ["<|startoftranscript|>", *([] if timestamps else ["<|notimestamps|>"])]
        view = ctranslate2.StorageView.from_array(features)
        first = ctranslate2_model.generate(view, [prompt], beam_size=1)[0].sequences_ids[0]
        with torch.inference_mode():
            second = transformers_model.generate(
                torch.from_numpy(features), num_beams=1, return_timestamps=timestamps
            )[0].tolist()  # fmt: skip
        texts = [
            engines[0].tokenizer.decode([number + 4 for number in ids if number < END]).strip()
            for ids in (first, second)
        ]
        texts += [opened.transcribe([sound], beam=1, timestamps=timestamps)[0].text for opened in engines]
        assert len(set(texts)) == 1, texts
        assert texts[0].startswith("And so my fellow Americans")
        assert (", ask what" in texts[0]) == (not timestamps)  # where tools seem to differ by a comma, this is why
    (small,) = load(tmp_path / "tiny.en").transcribe([sound])  # int8, beam 5
    assert words(small.text) == words(texts[0])


def words(text: str) -> list[str]:
    return "".join(sign for sign in text.lower() if sign.isalpha() or sign == " ").split()
