"""Hugging Face's pipeline behind FastAPI, one request at a time, run by benchmarks/serving_tasks.py.

python huggingface_serving.py embed|classify MODEL THREADS
"""

from __future__ import annotations

import socket
import sys
import threading

import torch
import uvicorn
from fastapi import FastAPI
from transformers import pipeline


def main(task: str, model: str, threads: str) -> None:
    torch.set_num_threads(int(threads))
    torch.set_flush_denormal(True)
    kind = {"embed": "feature-extraction", "classify": "text-classification"}[task]
    run, lock = pipeline(kind, model=model, tokenizer=model, device="cpu"), threading.Lock()

    def embed(text: str) -> dict:
        states = run(text, return_tensors=True)[0]  # (T, D)
        return {"vectors": [torch.nn.functional.normalize(states.mean(dim=0), dim=0).tolist()]}

    def classify(text: str) -> dict:
        return {"answers": run(text, top_k=5)}

    answer = {"embed": embed, "classify": classify}[task]
    app = FastAPI()

    @app.post(f"/{task}")
    def asked(question: dict) -> dict:
        with lock:
            return answer(question["text"])

    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    print(f"at http://127.0.0.1:{listening.getsockname()[1]}", file=sys.stderr, flush=True)
    uvicorn.run(app, fd=listening.fileno(), log_level="warning")


if __name__ == "__main__":
    main(*sys.argv[1:])
