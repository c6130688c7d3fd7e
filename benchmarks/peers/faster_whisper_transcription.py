"""faster-whisper on a CTranslate2 directory with int8 weights, run by benchmarks/transcription.py."""

from __future__ import annotations

from faster_whisper import WhisperModel
from measure_transcription import main


def open_model(directory: str, sound: str, threads: int):
    model = WhisperModel(directory, device="cpu", compute_type="int8", cpu_threads=threads)

    def transcribe(beam: int) -> str:
        segments, _ = model.transcribe(sound, beam_size=beam, language="en")
        return "".join(segment.text for segment in segments)

    return transcribe


if __name__ == "__main__":
    main(open_model)
