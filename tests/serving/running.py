"""A real server process on loopback, and the smallest clients that can talk to it."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ADDRESS = re.compile(r"Headwise is at http://127\.0\.0\.1:(\d+)")
RIGGED = Path(__file__).with_name("rigged.py")
KEY = "a-key-that-nobody-guesses"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Running:
    """A server and its port."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.log: list[str] = []
        assert process.stderr is not None
        for line in process.stderr:
            self.log.append(line)
            if found := ADDRESS.search(line):
                self.port = int(found[1])
                break
        else:
            raise AssertionError(f"the server did not start: {''.join(self.log)}")
        # The server would block once the pipe is full.
        self._reader = threading.Thread(target=self.log.extend, args=(process.stderr,), daemon=True)
        self._reader.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None, timeout: float = 120
    ) -> Answer:
        """One request on a connection of its own. A body that is not bytes is sent as JSON."""
        sent = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def upload(self, path: str, files: Sequence[tuple[str, bytes]], *, timeout: float = 120, **fields: str) -> Answer:
        """A form with files, as a browser or curl sends it."""
        return self.ask("POST", path, *form(files, fields), timeout)

    def begin_upload(
        self, path: str, files: Sequence[tuple[str, bytes]], **fields: str
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Sends a form and waits for the head of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("POST", path, *form(files, fields))
        return connection, connection.getresponse()

    def translate(self, text: str | list[str], **more: Any) -> Answer:
        return self.ask("POST", "/translate", {"q": text, "source": "en", "target": "de", **more})

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric over all labels that are not given."""
        total = 0.0
        for line in self.ask("GET", "/metrics").body.decode().splitlines():
            if re.match(rf"{name}(\{{| )", line) and all(f'{key}="{value}"' in line for key, value in labels.items()):
                total += float(line.rsplit(" ", 1)[1])
        return total

    def memory(self) -> int:
        """Bytes that the process holds."""
        fields = Path(f"/proc/{self.process.pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")

    def forget_peak(self) -> None:
        """Measures `peak` from here on."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def peak(self) -> int:
        """The most bytes that the process has held."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.findall(r"VmHWM:\s*(\d+) kB", status)[0]) * 1024

    def imported(self, name: str) -> bool:
        """Whether a shared library of that name is loaded."""
        return name in Path(f"/proc/{self.process.pid}/maps").read_text()

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.end()

    def end(self) -> int:
        code = self.process.wait(timeout=60)
        self._reader.join()
        return code


def form(files: Sequence[tuple[str, bytes]], fields: Mapping[str, str]) -> tuple[bytes, dict[str, str]]:
    """The body of a form with files, and its header."""
    parts = [(f'name="{name}"', value.encode()) for name, value in fields.items()]
    parts += [(f'name="{name}"; filename="file"', content) for name, content in files]
    body = b"".join(
        f"--parts\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode() + content + b"\r\n"
        for head, content in parts
    )
    return body + b"--parts--\r\n", {"Content-Type": "multipart/form-data; boundary=parts"}


@contextmanager
def serving(*arguments: object, script: Path | None = None) -> Iterator[Running]:
    """`headwise serve`, or a script in its place, on a free port."""
    start = [str(script)] if script is not None else ["-m", "headwise", "serve", "--port", "0"]
    process = subprocess.Popen(
        [sys.executable, *start, *map(str, arguments)], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    try:
        yield Running(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


class Client:
    """Keeps a connection alive; light enough for hundreds of clients in one event loop."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def post(self, path: str, body: Any) -> tuple[int, Any]:
        """Returns status and answer; raises ConnectionError if the connection was refused or closed silently."""
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        assert self.reader is not None
        content = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\n\r\n"
        )
        self.writer.write(head.encode() + content)
        try:
            lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        except asyncio.IncompleteReadError as error:
            self.close()
            raise ConnectionResetError("closed without an answer") from error
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        answer = await self.reader.readexactly(int(headers["content-length"]))
        if headers.get("connection") == "close":
            self.close()
        return int(lines[0].split()[1]), json.loads(answer)

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None
