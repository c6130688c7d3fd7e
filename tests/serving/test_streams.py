"""Streams have the same text as plain answers, and cost nothing once their client has left."""

from __future__ import annotations

import http.client
import json
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import pytest
from running import RIGGED, Running, serving

from headwise.workflows.generate import open_generator

LONG = {"prompt": "the ", "max_tokens": 2000, "seed": 1, "stream": True}
SLOTS = 2


def begin(running: Running, path: str = "/generate", **changes: object) -> http.client.HTTPConnection:
    """Opens a stream and waits for its first event."""
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
    connection.request("POST", path, json.dumps({**LONG, **changes}), {"Content-Type": "application/json"})
    response = connection.getresponse()
    assert response.status == 200
    assert response.readline().startswith(b"data: ")
    connection.response = response  # type: ignore[attr-defined]
    return connection


def hang_up(connection: http.client.HTTPConnection) -> None:
    connection.response.close()  # type: ignore[attr-defined]
    connection.close()


def test_a_stream_is_the_text_piece_by_piece(server: Running, language_model: Path) -> None:
    offline = open_generator(language_model).generate("the ", max_tokens=30, seed=4, stop=["og"])[0]
    body = {"prompt": "the ", "max_tokens": 30, "seed": 4, "stop": ["og"], "stream": True}
    answer = server.ask("POST", "/generate", body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [json.loads(line.removeprefix("data: ")) for line in answer.body.decode().split("\n\n") if line]
    assert "".join(event.get("text", "") for event in events) == offline.text
    assert events[-1] == {"done": True, "stopped": offline.stopped}
    assert len(events) > 3


@pytest.mark.parametrize("path", ["/generate", "/v1/completions"])
def test_dropped_streams_free_their_slots(language_model: Path, path: str) -> None:
    with serving(language_model, "slow", "", SLOTS, script=RIGGED) as running:
        for _ in range(3):
            streams = [begin(running, path, model="rigged") for _ in range(SLOTS)]
            assert running.metric("headwise_active_jobs", lane="write") == SLOTS
            for stream in streams:
                hang_up(stream)
            while running.metric("headwise_active_jobs", lane="write"):
                pass
        assert running.metric("headwise_queue_requests", lane="write") == 0
        assert running.ask("POST", "/generate", {"prompt": "the ", "max_tokens": 3}).status == 200
        assert running.stop() == 0


def test_more_texts_than_slots_wait_and_more_than_the_queue_are_refused(language_model: Path) -> None:
    with serving(language_model, "slow", "", 1, script=RIGGED) as running:
        first = begin(running)
        with ThreadPoolExecutor(3) as pool:
            waiting = [pool.submit(begin, running) for _ in range(3)]
            while running.metric("headwise_queue_requests", lane="write") < 4:
                pass
            refused = running.ask("POST", "/generate", LONG)
            assert (refused.status, refused.headers["retry-after"]) == (429, "1")
            assert running.ask("GET", "/health/ready").status == 200  # busy is not stuck
            assert running.metric("headwise_active_jobs", lane="write") == 1
            hang_up(first)
            for stream in as_completed(waiting):  # each starts when the one before has ended
                hang_up(stream.result())
