"""Compares the routes of other tasks with what somebody would write in an hour: a library behind FastAPI.

    python benchmarks/serving_tasks.py [--clients 16] [--seconds 8] [--rounds 3] [--only embed classify transcribe]

/embed, with MiniLM, and /classify beside Hugging Face's pipeline, one request at a time; /transcribe, with Whisper
tiny.en, beside faster-whisper with int8 weights. Texts are the test questions of banking77, the sound is speech/jfk.wav
(eleven seconds), both from --corpora (or HEADWISE_DATA). The classifier is a BERT of MiniLM's size after two updates:
the weights are the same on both sides, and what they say does not matter here. Servers take turns within a round. The
clients run in this process, which shares the cores with the server, in the same way for both. `make published` fetches
the models.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from environments import DEFAULT, NotInstalledError, environment
from results import Result
from serving import CORES, load, post, serving

from headwise.config.recipe import load_recipe
from headwise.text.tables import read_table_batches
from headwise.workflows.export import export_model
from headwise.workflows.import_model import import_model
from headwise.workflows.train import train

HERE = Path(__file__).parent
PUBLISHED = Path.home() / ".cache" / "headwise" / "published"
PIPELINE, WHISPER = "Hugging Face pipeline behind FastAPI", "faster-whisper behind FastAPI"
TEXTS = 400
SIZE_OF_MINILM = (
    "model.layers=6", "model.model_dim=384", "model.num_heads=12", "model.ff_dim=1536", "model.norm=post",
    "model.pooling=first", "training.steps=2",
)  # fmt: skip
FORM = "multipart/form-data; boundary=sound"


@dataclass(frozen=True)
class Contest:
    """A route, our model, the peer with its model, and the requests of both."""

    model: Path
    peer: str
    environment: str
    script: str
    arguments: tuple[str, ...]
    ours: list[bytes]
    theirs: list[bytes]
    clients: int | None = None  # unset: --clients


def texts(corpora: Path) -> list[str]:
    table = read_table_batches([str(corpora / "banking77" / "test.csv.gz")], ("text", "label"))
    return [row[0] for batch in table for row in batch.rows][:TEXTS]


def embed(arguments: argparse.Namespace) -> Contest:
    published, model = PUBLISHED / "minilm", imported(arguments, "minilm")
    asked = [post("/embed", json.dumps({"text": text}).encode()) for text in texts(arguments.corpora)]
    given = ("embed", str(published), str(CORES))
    return Contest(model, PIPELINE, "huggingface", "huggingface_serving.py", given, asked, asked)


def classify(arguments: argparse.Namespace) -> Contest:
    run, layout = arguments.work / "classifier", arguments.work / "classifier-huggingface"
    if not (run / "model").is_dir():
        train(*load_recipe("banking77", SIZE_OF_MINILM, arguments.corpora), run)
    if not layout.is_dir():
        export_model(str(run / "model"), layout, "huggingface")
    asked = [post("/classify", json.dumps({"text": text}).encode()) for text in texts(arguments.corpora)]
    given = ("classify", str(layout), str(CORES))
    return Contest(run / "model", PIPELINE, "huggingface", "huggingface_serving.py", given, asked, asked)


def transcribe(arguments: argparse.Namespace) -> Contest:
    published, model = PUBLISHED / "whisper-tiny.en", imported(arguments, "whisper-tiny.en")
    sound = (arguments.corpora / "speech" / "jfk.wav").read_bytes()
    named = b'--sound\r\nContent-Disposition: form-data; name="file"; filename="jfk.wav"\r\n\r\n'
    ours = post("/transcribe", named + sound + b"\r\n--sound--\r\n", FORM)
    theirs = post("/transcribe", sound, "application/octet-stream")
    given = (str(published), str(CORES))
    return Contest(model, WHISPER, "faster-whisper", "faster_whisper_serving.py", given, [ours], [theirs], 4)


CONTESTS: dict[str, Callable[[argparse.Namespace], Contest]] = {
    "embed": embed, "classify": classify, "transcribe": transcribe,
}  # fmt: skip


def imported(arguments: argparse.Namespace, name: str) -> Path:
    model: Path = arguments.work / name
    if not model.is_dir():
        import_model(str(PUBLISHED / name), model)
    return model


def measure(contest: Contest, arguments: argparse.Namespace) -> tuple[list[float], list[float]]:
    """Requests per second of both, round by round."""
    python = environment(arguments.environments, contest.environment)
    own = ["-m", "headwise", "serve", "--model", str(contest.model), "--port", "0", "--quiet"]
    servers = [
        ([sys.executable, *own], contest.ours),
        ([str(python), str(HERE / "peers" / contest.script), *contest.arguments], contest.theirs),
    ]
    clients = contest.clients or arguments.clients
    found: tuple[list[float], list[float]] = ([], [])
    for number in range(arguments.rounds):
        for (command, requests), rates in zip(servers, found, strict=True):
            with serving(command) as port:
                with socket.create_connection(("127.0.0.1", port)) as first:  # some things are loaded only now
                    first.sendall(requests[0])
                    first.recv(1)
                figures = asyncio.run(load(port, requests, clients, arguments.seconds))
            rates.append(figures["requests_per_second"])
            print(f"round {number + 1} {command[1:4]} {figures}", file=sys.stderr, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=list(CONTESTS), choices=list(CONTESTS))
    parser.add_argument("--clients", type=int, default=16, help="of /embed and /classify; /transcribe has 4")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--corpora", type=Path, default=Path(os.environ.get("HEADWISE_DATA", ".")))
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache" / "headwise" / "serving_tasks")
    parser.add_argument("--environments", type=Path, default=DEFAULT)
    parser.add_argument("--json", type=Path, help="write the result (see results.py) into this file")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    settings = {"seconds": arguments.seconds, "models": "MiniLM and Whisper tiny.en"}
    result = Result("serving_tasks", "Serving other tasks", settings, threads=CORES)
    for name in arguments.only:
        contest = CONTESTS[name](arguments)
        try:
            ours, theirs = measure(contest, arguments)
        except NotInstalledError as error:
            result.leave_out(contest.peer, str(error))
            continue
        result.add(
            f"/{name}, {contest.clients or arguments.clients} clients", "requests/s", ours, {contest.peer: theirs}
        )
        print(f"/{name}: {ours} and {theirs} requests/s, ratio {result.rows[-1].ratio:.2f}", flush=True)
    result.save(arguments.json)


if __name__ == "__main__":
    main()
