"""What a connection answers by itself: what is not HTTP, what is too slow, and requests to a full queue."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from headwise.serving.connection import Connection
from headwise.serving.limits import Limits
from headwise.serving.overload import Overload
from headwise.serving.prometheus import Metrics

HEAD = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
WANTED = json.dumps({"queue": "a"}).encode()


class Transport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.sent, self.closed = b"", False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += bytes(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Scene:
    """A connection to an application that says what it got, and two queues, a and b, of which a may be full."""

    def __init__(self, *, full: bool = True, connections: int = 10) -> None:
        self.queues = {"a": SimpleNamespace(full=full, name="a"), "b": SimpleNamespace(full=False, name="b")}
        self.bodies: list[bytes] = []
        index: Any = SimpleNamespace(models={"m": SimpleNamespace(queues=self.queues.values())})
        self.overload = Overload(index, Metrics())
        self.overload.finders = {"/work": lambda index, fields: self.queues.get(fields["queue"])}  # type: ignore[assignment,return-value]
        service = SimpleNamespace(
            overload=self.overload, limits=Limits(connections=connections), guard=SimpleNamespace(draining=False)
        )
        config = uvicorn.Config(
            self.app, log_config=None, lifespan="off", ws="none", access_log=False, interface="asgi3"
        )
        config.load()
        kind = type("OwnConnection", (Connection,), {"service": service})
        self.connection = kind(config=config, server_state=ServerState(), app_state={})
        self.transport = Transport()
        self.connection.connection_made(self.transport)

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        self.bodies.append(body)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async def send(self, *parts: bytes) -> None:
        for part in parts:
            self.connection.data_received(part)
            for _ in range(10):
                await asyncio.sleep(0)

    @property
    def answers(self) -> list[bytes]:
        return [part[:3] for part in self.transport.sent.split(b"HTTP/1.1 ")[1:]]


def request(body: bytes = WANTED, more: bytes = b"", path: bytes = b"/work") -> bytes:
    return HEAD % path + more + b"Content-Length: %d\r\n\r\n" % len(body) + body


def play(scene: Any) -> None:
    asyncio.run(scene())


def test_a_request_to_a_full_queue_is_refused_without_the_application() -> None:
    async def scene() -> None:
        place = Scene()
        await place.send(request(), request())  # the connection stays open
        assert (place.answers, place.bodies, place.transport.closed) == ([b"429", b"429"], [], False)
        head, _, body = place.transport.sent.partition(b"\r\n\r\n")
        assert b"\r\nretry-after: 1\r\n" in head
        assert json.loads(body[: body.index(b"}") + 1]) == {"error": "the server is busy; try again in a moment"}
        place.queues["a"].full = False
        await place.send(request())
        assert (place.answers, place.bodies) == ([b"429", b"429", b"200"], [WANTED])
        text = place.overload.metrics.text()
        assert b'headwise_requests_total{method="POST",route="/work",status="429"} 2.0' in text
        assert b'headwise_rejections_total{model="a",reason="busy"} 2.0' in text

    play(scene)


def test_a_refusal_has_the_form_that_the_client_of_the_path_reads() -> None:
    async def scene() -> None:
        place = Scene()
        place.overload.finders["/v1/work"] = place.overload.finders["/work"]
        await place.send(request(path=b"/v1/work"))
        told = json.loads(place.transport.sent.partition(b"\r\n\r\n")[2])
        assert told["error"]["message"] == "the server is busy; try again in a moment"

    play(scene)


@pytest.mark.parametrize("body", [b'{"queue": "b"}', b'{"queue": "c"}', b"no JSON", b"[1]", b"", b"[" * 30_000])
def test_what_is_for_another_queue_or_unclear_takes_the_usual_way(body: bytes) -> None:
    async def scene() -> None:
        place = Scene()
        await place.send(request(body))
        assert (place.answers, place.bodies) == ([b"200"], [body])

    play(scene)


def test_a_body_in_pieces_or_a_long_one_arrives_whole() -> None:
    async def scene() -> None:
        place, long = Scene(), b'{"queue": "a", "x": "%s"}' % (b"x" * 50_000)
        whole = request(long)
        await place.send(*(whole[start : start + 7_000] for start in range(0, len(whole), 7_000)))
        assert (place.answers, place.bodies) == ([b"200"], [long])
        await place.send(*(bytes([byte]) for byte in request()))
        assert place.answers == [b"200", b"429"]

    play(scene)


def test_a_client_that_closes_or_wants_to_be_asked_is_served() -> None:
    async def scene() -> None:
        place = Scene()
        await place.send(request(more=b"Expect: 100-continue\r\n"))
        assert place.answers == [b"100", b"200"]
        place = Scene()
        await place.send(request(more=b"Connection: close\r\n"))
        assert (place.answers, place.transport.closed) == ([b"429"], True)

    play(scene)


def test_pipelined_requests_are_answered_in_order() -> None:
    async def scene() -> None:
        place = Scene()
        await place.send(request(b'{"queue": "b"}') + request())
        assert place.answers == [b"200", b"200"]  # the second came while the first was at work: the usual way

    play(scene)


@pytest.mark.parametrize(
    "nonsense",
    [
        b"hello\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/9.9\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\n\r\n", b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: 1\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"a" * 40_000,
    ],
)  # fmt: skip
def test_what_is_not_http_gets_an_error_in_json(nonsense: bytes) -> None:
    async def scene() -> None:
        place = Scene()
        await place.send(nonsense)
        head, _, body = place.transport.sent.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert b"\r\ncontent-type: application/json\r\n" in head
        assert b"\r\nx-content-type-options: nosniff\r\n" in head
        assert set(json.loads(body)) == {"error"}
        assert place.transport.closed

    play(scene)


def test_one_connection_too_many_is_told_so() -> None:
    async def scene() -> None:
        place = Scene(connections=0)
        assert place.answers == [b"503"]
        assert b"too many connections" in place.transport.sent
        assert place.transport.closed

    play(scene)


def test_a_request_that_does_not_arrive_in_time_gets_408_and_silence_nothing() -> None:
    async def scene() -> None:
        for sent, answers in ((b"", []), (b"GET / HT", [b"408"]), (request()[:-3], [b"408"])):
            place = Scene()
            await place.send(sent)
            place.connection._too_slow()
            assert (place.answers, place.transport.closed) == (answers, True)

    play(scene)
