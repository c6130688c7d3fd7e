"""On shutdown every accepted request is answered: finished, or ended with a 503."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import random
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from running import RIGGED, Client, Running, serving
from test_load import expected_answers


async def ask_until_it_ends(running: Running, asked: list[tuple[dict[str, Any], str]], clients: int) -> dict[str, int]:
    """Counts what became of the requests of busy clients when the server gets SIGTERM."""
    seen: collections.Counter[str] = collections.Counter()
    warm = asyncio.Event()

    async def client(number: int) -> None:
        choose, connection = random.Random(number), Client(running.port)
        while True:
            body, expected = choose.choice(asked)
            try:
                status, answer = await connection.post("/translate", body)
            except ConnectionRefusedError:
                seen["refused"] += 1
                return
            except (ConnectionError, asyncio.IncompleteReadError):
                seen["lost"] += 1
                return
            if status == 200:
                seen["right" if answer == {"translatedText": expected} else "wrong"] += 1
                if seen["right"] == 3 * clients:
                    warm.set()
            else:
                seen[str(status)] += 1
                if status == 503:
                    return

    tasks = [asyncio.create_task(client(number)) for number in range(clients)]
    await warm.wait()
    running.process.send_signal(signal.SIGTERM)
    await asyncio.gather(*tasks)
    return dict(seen)


def test_sigterm_under_load_answers_or_refuses_every_request(word_model: Path) -> None:
    with serving("--model", word_model, "--quiet") as running:
        seen = asyncio.run(ask_until_it_ends(running, expected_answers(word_model), clients=40))
        assert running.end() == 0
    assert set(seen) <= {"right", "503", "refused"}, seen
    assert seen.get("503", 0) + seen.get("refused", 0) == 40  # every client has been turned away with an answer


def test_requests_unfinished_after_the_grace_time_get_503(held: Running, flag: Path) -> None:
    flag.touch()
    statuses: list[int] = []
    client = threading.Thread(target=lambda: statuses.append(held.translate("red dog").status))
    client.start()
    while not held.metric("headwise_queue_requests"):
        pass
    assert held.stop() == 0
    client.join()
    assert statuses == [503]


def test_an_engine_that_cannot_be_stopped_does_not_end_the_server_with_an_abort(word_model: Path) -> None:
    with serving(word_model, "torch", "", script=RIGGED) as running:
        assert running.ask("GET", "/health").status == 200  # from now on it handles signals
        with pytest.raises(TimeoutError):  # the client leaves; torch goes on
            running.ask("POST", "/translate", {"q": "red " * 8, "source": "en", "target": "de"}, timeout=2)
        assert running.stop() == 0
        assert "an engine does not stop" in "".join(running.log)


def test_a_stream_is_finished_before_the_shutdown(language_model: Path) -> None:
    from test_streams import begin

    with serving("--model", f"letters={language_model}") as running:
        stream = begin(running, max_tokens=300)
        running.process.send_signal(signal.SIGTERM)
        events = stream.response.read()  # type: ignore[attr-defined]
        assert b'{"done":true' in events
        assert running.end() == 0


def test_a_second_signal_ends_it_at_once(held: Running, flag: Path) -> None:
    flag.touch()
    client = threading.Thread(target=lambda: _ignore(held))
    client.start()
    while not held.metric("headwise_queue_requests"):
        pass
    held.process.send_signal(signal.SIGTERM)
    while "shutting down" not in "".join(held.log):
        pass
    held.process.send_signal(signal.SIGTERM)
    assert held.end() == 128 + signal.SIGTERM
    client.join()


def _ignore(running: Running) -> None:
    with contextlib.suppress(ConnectionError):
        running.translate("red dog")
