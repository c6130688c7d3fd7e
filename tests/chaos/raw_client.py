"""A client that sends any bytes to a server and reads one answer; keeps its connection where the server does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LONGEST = 300  # seconds for an answer: only a hang takes longer


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def request(method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> bytes:
    """Writes a request; `headers` may replace the usual ones or, with the value "", leave them out."""
    usual = {"Host": "127.0.0.1", "Content-Type": "application/json", "Content-Length": str(len(body))}
    sent = {name: value for name, value in {**usual, **(headers or {})}.items() if value}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + body


def post(path: str, body: Any) -> bytes:
    return request("POST", path, json.dumps(body).encode())


class RawClient:
    """One connection to a server on loopback, opened again when the server has closed it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def ask(self, content: bytes) -> Answer:
        """Raises ConnectionError if there is no answer, TimeoutError if there is none in time."""
        async with asyncio.timeout(LONGEST):
            try:
                return await self._ask(content)
            except (ConnectionError, asyncio.IncompleteReadError) as error:
                self.close()
                raise ConnectionResetError(f"closed without a whole answer: {error}") from error

    async def leave(self, content: bytes, seconds: float) -> None:
        """Sends a request and goes away without waiting for the answer."""
        self.close()
        writer = await self._connected()
        writer.write(content)
        await asyncio.sleep(seconds)
        self.close()

    async def _connected(self) -> asyncio.StreamWriter:
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self.writer

    async def _ask(self, content: bytes) -> Answer:
        writer = await self._connected()
        assert self.reader is not None
        writer.write(content)
        head = ["HTTP/1.1 100 Continue"]
        while head[0].split()[1] == "100":  # the answer itself comes after it
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (line.partition(": ") for line in head[1:] if line)
        headers = {name.lower(): value for name, _, value in pairs}
        status = int(head[0].split()[1])
        body = b"" if content.startswith(b"HEAD ") or status == 304 else await self._body(headers)
        if headers.get("connection") == "close":
            self.close()
        return Answer(status, headers, body)

    async def _body(self, headers: Mapping[str, str]) -> bytes:
        assert self.reader is not None
        if headers.get("transfer-encoding") != "chunked":
            return await self.reader.readexactly(int(headers.get("content-length", 0)))
        parts = []
        while True:
            size = int(await self.reader.readuntil(b"\r\n"), 16)
            parts.append(await self.reader.readexactly(size))
            await self.reader.readexactly(2)
            if not size:
                return b"".join(parts)

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None
