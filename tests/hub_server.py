"""A small server that speaks the Hugging Face Hub's protocol on loopback, and can break off in the middle of a file."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(ThreadingHTTPServer):
    """Serves the folder as the model `name`."""

    daemon_threads = True

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder, self.name = folder, name
        self.breaks: dict[str, int] = {}  # how often to break off in the middle of a file
        self.fetched: list[str] = []  # files that were asked for
        self.starts: dict[str, list[int]] = {}  # by file: the byte at which each answer began

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def log_message(self, *_: Any) -> None:
        return

    def _answer(self, body: bool) -> None:
        path, name = self.path.split("?")[0], self.server.name
        files = sorted(file.name for file in self.server.folder.iterdir() if file.is_file())
        if re.fullmatch(rf"/api/models/{name}(/revision/(main|{COMMIT}))?", path):
            self._json({"_id": "1", "id": name, "sha": COMMIT, "siblings": [{"rfilename": file} for file in files]})
        elif path == f"/api/models/{name}/tree/{COMMIT}":
            self._json([
                {"type": "file", "path": name, "oid": self._tag(name), "size": len(self._content(name))}
                for name in files
            ])  # fmt: skip
        elif path.startswith(f"/{name}/resolve/{COMMIT}/") and path.rsplit("/", 1)[1] in files:
            self._file(path.rsplit("/", 1)[1], body)
        else:
            known = path.startswith((f"/api/models/{name}", f"/{name}"))
            self.send_response(404)
            self.send_header("X-Error-Code", "RevisionNotFound" if known else "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()

    def _tag(self, file: str) -> str:
        return hashlib.sha1(self._content(file)).hexdigest()

    def _content(self, file: str) -> bytes:
        return (self.server.folder / file).read_bytes()

    def _json(self, value: Any) -> None:
        content = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _file(self, file: str, body: bool) -> None:
        content = self._content(file)
        start = int(match[1]) if (match := re.match(r"bytes=(\d+)-", self.headers.get("Range", ""))) else 0
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{self._tag(file)}"')
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        if not body:
            return
        self.server.fetched.append(file)
        self.server.starts.setdefault(file, []).append(start)
        if self.server.breaks.get(file, 0):
            self.server.breaks[file] -= 1
            self.wfile.write(content[start : start + (len(content) - start) // 2])
            self.wfile.flush()
            self.close_connection = True
            self.connection.close()
            return
        self.wfile.write(content[start:])


@contextmanager
def running(folder: Path, name: str) -> Iterator[Hub]:
    with Hub(folder, name) as hub:
        thread = threading.Thread(target=hub.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()
