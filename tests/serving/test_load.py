"""Many clients at once get the answers of offline translation, and no limit is exceeded."""

from __future__ import annotations

import asyncio
import collections
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fixtures_models import english_sentences
from PIL import Image
from running import RIGGED, Answer, Client, Running, serving
from sounds import save, tone

from headwise.workflows.translate import open_translator

QUEUE = 32


def expected_answers(word_model: Path) -> list[tuple[dict[str, Any], str]]:
    """Makes requests of several kinds, so that batches are mixed, with the answers of offline translation."""
    translator = open_translator(word_model)
    texts = [
        *english_sentences(60, seed=11, longest=12),
        *("\n".join(english_sentences(4, seed=seed)) for seed in range(10)),
        " ".join(english_sentences(20, seed=5)),
        "",
    ]
    asked = []
    for number, text in enumerate(texts):
        beam = (None, 1, 3)[number % 3]
        answer = translator.translate([text], beam=beam)[0].text
        asked.append(({"q": text, "source": "en", "target": "de", "beam": beam}, answer))
    return asked


async def storm(port: int, clients: int, seconds: float, asked: list[tuple[dict[str, Any], str]]) -> dict[str, int]:
    """Runs clients that send one request after the other, and counts the results."""
    seen: collections.Counter[str] = collections.Counter()
    until = time.monotonic() + seconds

    async def client(number: int) -> None:
        choose, connection = random.Random(number), Client(port)
        while time.monotonic() < until:
            body, expected = choose.choice(asked)
            status, answer = await connection.post("/translate", body)
            if status == 200:
                seen["right" if answer == {"translatedText": expected} else "wrong"] += 1
            else:
                seen[str(status)] += 1
                await asyncio.sleep(0.05)
        connection.close()

    await asyncio.gather(*(client(number) for number in range(clients)))
    return dict(seen)


def run_storm(word_model: Path, clients: int, seconds: float) -> None:
    asked = expected_answers(word_model)
    with serving("--model", word_model, "--queue", QUEUE, "--quiet") as running:
        asyncio.run(storm(running.port, clients, seconds / 3, asked))
        before, deepest, over = running.memory(), 0.0, threading.Event()

        def watch() -> None:
            nonlocal deepest
            while not over.wait(0.05):
                deepest = max(deepest, running.metric("headwise_queue_requests"))

        watching = threading.Thread(target=watch)
        watching.start()
        seen = asyncio.run(storm(running.port, clients, seconds, asked))
        over.set()
        watching.join()
        assert running.ask("GET", "/health/ready").status == 200
        grown = running.memory() - before
        batches, jobs = running.metric("headwise_batch_jobs_count"), running.metric("headwise_batch_jobs_sum")
        assert running.stop() == 0
    assert set(seen) <= {"right", "429"}, seen
    assert seen["right"] > clients
    assert seen.get("429", 0) > 0, "the queue was never full"
    assert 0 < deepest <= QUEUE
    assert jobs > 1.5 * batches, "requests were not decoded together"
    assert grown < 40 * 2**20, f"memory grew by {grown / 2**20:.0f} MB"


def test_60_clients_get_the_answers_of_offline_translation(word_model: Path) -> None:
    run_storm(word_model, clients=60, seconds=3)


@pytest.mark.slow
def test_200_clients_for_30_seconds_get_the_answers_of_offline_translation(word_model: Path) -> None:
    run_storm(word_model, clients=200, seconds=30)


def test_a_full_queue_answers_429_and_keeps_those_that_wait(held: Running, flag: Path) -> None:
    flag.touch()
    answers: list[int] = []
    clients = [threading.Thread(target=lambda: answers.append(held.translate("red dog").status)) for _ in range(4)]
    for client in clients:
        client.start()
    while held.metric("headwise_queue_requests", lane="translate") < 4:
        pass
    for _ in range(3):
        refused = held.translate("blue cat")
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
    assert answers == []  # the engine hangs: none of them can have been answered
    flag.unlink()
    for client in clients:
        client.join()
    assert answers == [200] * 4
    assert held.metric("headwise_rejections_total", reason="busy") == 3


# By path, the fields of a request, and the queue that it waits in.
REQUESTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "/classify": ({"text": "red dog"}, "kinds", "classify"),
    "/look": ({"model": "stripes"}, "stripes", "read"),
    "/fill": ({"text": "red [MASK]"}, "gaps", "fill"),
    "/embed": ({"text": "red dog"}, "vectors", "embed"),
    "/v1/embeddings": ({"input": "red dog", "model": "vectors"}, "vectors", "embed"),
    "/transcribe": ({}, "tones", "transcribe"),
    "/transcribe?streamed": ({"stream": "true"}, "tones", "transcribe"),
    "/v1/audio/transcriptions": ({"model": "tones"}, "tones", "transcribe"),
}


def test_every_full_queue_answers_429_and_keeps_those_that_wait(
    models: dict[str, Path], flag: Path, tmp_path: Path
) -> None:
    Image.new("L", (8, 8)).save(tmp_path / "a.png")
    sound = save(tmp_path / "a.wav", tone(0.5))
    files = {"tones": sound.read_bytes(), "stripes": (tmp_path / "a.png").read_bytes()}

    def send(path: str, timeout: float = 120) -> Answer:
        fields, model, _ = REQUESTS[path]
        if model in files:
            return running.upload(path, [("file", files[model])], timeout=timeout, **fields)
        return running.ask("POST", path, fields, timeout=timeout)

    named = ":".join(f"{name}={models[name]}" for name in ("words", "kinds", "stripes", "gaps", "vectors", "tones"))
    with serving(named, "hang", flag, script=RIGGED) as running:
        for path, (_, model, lane) in REQUESTS.items():
            flag.touch()
            with ThreadPoolExecutor(4) as pool:
                waiting = [pool.submit(send, path) for _ in range(4)]
                while running.metric("headwise_queue_requests", model=model, lane=lane) < 4:
                    pass
                refused = [send(path) for _ in range(3)]
                assert [(one.status, one.headers["retry-after"]) for one in refused] == [(429, "1")] * 3
                assert not any(one.done() for one in waiting)
                flag.unlink()
                assert [one.result().status for one in waiting] == [200] * 4
            if lane in ("classify", "fill", "embed"):  # the first was at work; the others waited together
                jobs, batches = (running.metric(f"headwise_batch_jobs_{part}", lane=lane) for part in ("sum", "count"))
                assert jobs > 1.5 * batches, f"requests to {path} do not share a batch"
            flag.touch()
            with pytest.raises(TimeoutError):
                send(path, timeout=0.05)
            while running.metric("headwise_queue_requests", model=model):
                pass
            flag.unlink()
        assert running.metric("headwise_rejections_total", reason="busy") == 3 * len(REQUESTS)


def test_a_client_that_leaves_is_taken_out_of_the_queue(held: Running, flag: Path) -> None:
    flag.touch()
    for _ in range(20):  # five times what the queue takes
        with pytest.raises(TimeoutError):
            held.ask("POST", "/translate", {"q": "red dog", "source": "en", "target": "de"}, timeout=0.02)
        while held.metric("headwise_queue_requests"):  # a busy machine takes a moment to notice
            pass
    flag.unlink()
    assert held.translate("red dog").json == {"translatedText": "rot Hund"}
