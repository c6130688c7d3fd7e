"""The loop of a peer of benchmarks/transcription.py: reads requests, answers with seconds and texts."""

from __future__ import annotations

import json
import sys
import time


def main(open_model) -> None:
    """`open_model(directory, sound, threads)` returns a function from the beam to the text."""
    asked = json.loads(sys.stdin.readline())
    transcribe = open_model(asked["model"], asked["sound"], asked["threads"])
    transcribe(1)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        start = time.perf_counter()
        text = transcribe(json.loads(line)["beam"])
        print(json.dumps({"seconds": time.perf_counter() - start, "text": " ".join(text.split())}), flush=True)
