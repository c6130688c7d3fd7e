"""Hugging Face `generate` on a Whisper in its layout, run by benchmarks/transcription.py."""

from __future__ import annotations

import soundfile
import torch
from measure_transcription import main
from tokenizers import Tokenizer
from transformers import WhisperFeatureExtractor, WhisperForConditionalGeneration


def open_model(directory: str, sound: str, threads: int):
    torch.set_num_threads(threads)
    model = WhisperForConditionalGeneration.from_pretrained(directory).eval()
    extractor = WhisperFeatureExtractor.from_pretrained(directory)
    tokenizer = Tokenizer.from_file(f"{directory}/tokenizer.json")

    def transcribe(beam: int) -> str:
        samples, rate = soundfile.read(sound, dtype="float32")
        features = extractor(samples, sampling_rate=rate, return_tensors="pt").input_features
        with torch.inference_mode():
            ids = model.generate(features, num_beams=beam, return_timestamps=True)[0].tolist()
        return tokenizer.decode([number for number in ids if number < model.config.eos_token_id])

    return transcribe


if __name__ == "__main__":
    main(open_model)
