"""One connection of a client: limits on what arrives before a request is read, and answers without the application."""

from __future__ import annotations

import json
from asyncio import TimerHandle
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from headwise.serving.errors import error_content, error_headers, is_openai
from headwise.serving.guard import HEADERS, STRICT
from headwise.serving.limits import MAX_HEADERS
from headwise.serving.overload import BUSY, LONGEST_BODY

if TYPE_CHECKING:
    from headwise.serving.app import Service


def plain_answer(status: int, message: str, *, close: bool, openai: bool = False) -> bytes:
    """Makes a whole answer with the headers that every answer has."""
    body = json.dumps(error_content(status, message, openai), separators=(",", ":")).encode()
    headers = [*HEADERS, (b"content-security-policy", STRICT), (b"content-type", b"application/json")]
    headers += [(name.lower().encode(), value.encode()) for name, value in error_headers(status).items()]
    headers += [(b"content-length", str(len(body)).encode())] + ([(b"connection", b"close")] if close else [])
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode(), *(b": ".join(pair) for pair in headers)]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


FULL = plain_answer(503, "the server has too many connections; try again in a moment", close=True)
SLOW = plain_answer(408, "the request did not arrive in time", close=True)
REFUSED = {
    (close, openai): plain_answer(429, BUSY, close=close, openai=openai)
    for close in (False, True)
    for openai in (False, True)
}


class Connection(HttpToolsProtocol):
    """Limits the number of connections, the size and the time of arrival of headers; refuses what a full queue would.

    While a queue is full, a request that may be for it is held until its body is there, and then refused or passed on.
    """

    service: Service  # set by `run`, for all connections

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._head = 0
        self._timer: TimerHandle | None = None
        self._held: bytearray | None = None  # the body of a request that may be refused
        if len(self.connections) > self.service.limits.connections:
            self._close_with(FULL)
            return
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._head += len(data)
        super().data_received(data)
        if self._head > MAX_HEADERS and not self.transport.is_closing():
            self.send_400_response("the headers of the request are too large")

    def send_400_response(self, msg: str) -> None:
        """Answers what is not HTTP in the form of all other errors."""
        own = msg if msg[:1].islower() else "this is not a valid HTTP request"
        self._close_with(plain_answer(400, own, close=True))

    # ---- called by the parser

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._timer is None:
            self._start_timer()

    def on_headers_complete(self) -> None:
        if self._may_be_refused():
            self._held = bytearray()  # the timer goes on: the body must arrive in time as well
            return
        self._stop_timer()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._head = 0
        if self._held is None:
            super().on_body(body)
            return
        self._held += body
        if len(self._held) > LONGEST_BODY:
            self._pass_on()

    def on_message_complete(self) -> None:
        self._head = 0
        if self._held is not None:
            self._stop_timer()
            if self.service.overload.refuses(self._path(), bytes(self._held)):
                self._refuse()
                return
            self._pass_on()
        super().on_message_complete()

    # ---- refusals

    def _may_be_refused(self) -> bool:
        answered = self.cycle is None or self.cycle.response_complete
        if not answered or self.pipeline or self.expect_100_continue or self.parser.should_upgrade():
            return False
        return self.parser.get_method() == b"POST" and self.service.overload.concerns(self._path())

    def _path(self) -> str:
        return self.url.partition(b"?")[0].decode("latin-1")

    def _refuse(self) -> None:
        self._held = None
        close = self.service.guard.draining or not self.parser.should_keep_alive()
        answer = REFUSED[close, is_openai(self._path())]
        if close:
            self._close_with(answer)
            return
        self.transport.write(answer)
        self.on_response_complete()

    def _pass_on(self) -> None:
        held, self._held = bytes(self._held or b""), None
        self._stop_timer()
        super().on_headers_complete()
        if held:
            super().on_body(held)

    # ---- time

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(self.service.limits.arrival, self._too_slow)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            begun = self._head or self._held is not None
            self._close_with(SLOW if begun else b"")

    def _close_with(self, answer: bytes) -> None:
        self.transport.write(answer)
        self.transport.close()
