"""faster-whisper with int8 weights behind FastAPI, run by benchmarks/serving_tasks.py. The body is the sound itself.

python faster_whisper_serving.py MODEL CORES
"""

from __future__ import annotations

import io
import socket
import sys

import uvicorn
from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from faster_whisper import WhisperModel

BEAM = 5


def main(directory: str, cores: str) -> None:
    model = WhisperModel(directory, device="cpu", compute_type="int8", cpu_threads=1, num_workers=int(cores))
    app = FastAPI()

    def transcribe(sound: bytes) -> dict:
        segments, _ = model.transcribe(io.BytesIO(sound), beam_size=BEAM, language="en")
        return {"text": "".join(segment.text for segment in segments)}

    @app.post("/transcribe")
    async def asked(request: Request) -> dict:
        return await run_in_threadpool(transcribe, await request.body())

    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    print(f"at http://127.0.0.1:{listening.getsockname()[1]}", file=sys.stderr, flush=True)
    uvicorn.run(app, fd=listening.fileno(), log_level="warning")


if __name__ == "__main__":
    main(*sys.argv[1:])
