"""The end of a server: what was accepted is finished or refused, and nobody is left without an answer."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import random
import signal
import threading
from pathlib import Path
from typing import Any

from running import Client, Running, serving
from test_load import questions


async def ask_until_it_ends(running: Running, asked: list[tuple[dict[str, Any], str]], clients: int) -> dict[str, int]:
    """Clients ask without a pause; after a while the server gets SIGTERM. What became of every question."""
    seen: collections.Counter[str] = collections.Counter()
    warm = asyncio.Event()

    async def client(number: int) -> None:
        choose, connection = random.Random(number), Client(running.port)
        while True:
            question, expected = choose.choice(asked)
            try:
                status, answer = await connection.post("/translate", question)
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
        seen = asyncio.run(ask_until_it_ends(running, questions(word_model), clients=40))
        assert running.end() == 0
    assert set(seen) <= {"right", "503", "refused"}, seen
    assert seen.get("503", 0) + seen.get("refused", 0) == 40  # in the end every client has been turned away in words


def test_what_is_not_done_within_the_grace_time_is_refused(held: Running, flag: Path) -> None:
    flag.touch()
    statuses: list[int] = []
    asker = threading.Thread(target=lambda: statuses.append(held.translate("red dog").status))
    asker.start()
    while not held.metric("headwise_queue_requests"):
        pass
    assert held.stop() == 0
    asker.join()
    assert statuses == [503]


def test_a_stream_is_finished_before_the_end(language_model: Path) -> None:
    from test_streams import begin

    with serving("--model", f"letters={language_model}") as running:
        stream = begin(running, max_tokens=300)
        running.process.send_signal(signal.SIGTERM)
        events = stream.response.read()  # type: ignore[attr-defined]
        assert b'{"done":true' in events
        assert running.end() == 0


def test_a_second_signal_ends_it_at_once(held: Running, flag: Path) -> None:
    flag.touch()
    asker = threading.Thread(target=lambda: _ignore(held))
    asker.start()
    while not held.metric("headwise_queue_requests"):
        pass
    held.process.send_signal(signal.SIGTERM)
    while "shutting down" not in "".join(held.log):
        pass
    held.process.send_signal(signal.SIGTERM)
    assert held.end() == 128 + signal.SIGTERM
    asker.join()


def _ignore(running: Running) -> None:
    with contextlib.suppress(ConnectionError):
        running.translate("red dog")
