"""Checks every request before its handler runs, and adds headers to every answer: one piece of pure ASGI.

The Host must be a name of this server (otherwise another site could rebind its own name to this address). What a
browser sends on behalf of another site is refused (Origin, Sec-Fetch-Site). Keys are compared in constant time. The
body is counted while it is read, and must arrive before a deadline.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headwise.serving.access import AccessRules
from headwise.serving.errors import ClientLeft, RequestError, error_content, error_headers, is_openai
from headwise.serving.limits import MAX_BODY, Limits
from headwise.serving.prometheus import Metrics

HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
STRICT = b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

MANY_UPLOADS = "the server holds too many files at present; try again in a moment"

log = logging.getLogger("headwise.access")


class Guard:
    """Wraps the application. `open_paths` need no key, or look for it in the body themselves.

    `upload_limits` are the bytes of requests to paths that take files. What these hold in memory together is bounded.
    """

    def __init__(
        self,
        app: ASGIApp,
        access: AccessRules,
        limits: Limits,
        metrics: Metrics,
        open_paths: frozenset[str],
        template: Callable[[str], str] = lambda path: "unknown",
        upload_limits: Mapping[str, int] | None = None,
    ) -> None:
        self.app, self.access, self.limits, self.metrics = app, access, limits, metrics
        self.open_paths, self.template = open_paths, template
        self.upload_limits = upload_limits or {}
        self.draining = False
        self.in_flight = 0
        self.uploaded = 0  # bytes of files that are held for requests without an answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        began = time.monotonic()
        answer, body = _GuardedSend(send, self, scope["path"]), _GuardedReceive(receive, self, scope["path"])
        self.in_flight += 1
        try:
            problem = self._problem(scope)
            if problem is not None:
                await answer.refuse(*problem)
            else:
                await self.app(scope, body, answer)
        except Exception:
            # The application has answered and logged it, but raises it again for the server, which would log it in
            # full: its message may quote a text.
            if not answer.status:
                await answer.refuse(503, "the server failed; see its log")
        finally:
            self.in_flight -= 1
            body.release()
            self._note(scope, answer.status, time.monotonic() - began)

    def _problem(self, scope: Scope) -> tuple[int, str] | None:
        headers = _Headers(scope["headers"])
        if self.draining and not scope["path"].startswith("/health"):
            return 503, "the server is shutting down"
        host = headers.only("host")
        name = _host_name(host) if host is not None else None
        if name is None or not self.access.accepts_host(name):
            return 403, "the Host header does not name this server; to allow that name, start it with --allow-host NAME"
        if _cross_site(scope["method"], headers, str(host)):
            return 403, "requests from other sites are refused"
        length = headers.only("content-length")
        path = scope["path"]
        most = self.upload_limits.get(path, MAX_BODY)
        if length is not None and (not length.isdecimal() or int(length[:20]) > most):
            return 413, _too_large(most)
        scope["headwise.authorized"] = self.access.accepts_key(headers.key())
        if not scope["headwise.authorized"] and not (path in self.open_paths or path.startswith("/page/")):
            return 401, "a valid API key is needed: send it as 'Authorization: Bearer KEY' or 'X-API-Key: KEY'"
        if path in self.upload_limits and self.uploaded + int(length or 0) > self.limits.uploads:
            return 429, MANY_UPLOADS
        return None

    def _note(self, scope: MutableMapping[str, Any], status: int, seconds: float) -> None:
        """Logs the route's template, not the path, so that no query and no name ends up in the log."""
        route = self.template(scope["path"])
        method = scope["method"] if scope["method"] in ("GET", "HEAD", "POST", "OPTIONS") else "other"
        self.metrics.requests.labels(route, method, status).inc()
        self.metrics.seconds.labels(route).observe(seconds)
        client = (scope.get("client") or ("-",))[0]
        milliseconds = round(seconds * 1000, 1)
        fields = {"client": client, "method": method, "route": route, "status": status, "milliseconds": milliseconds}
        log.info("%s %s %s %d %.1f ms", *fields.values(), extra={"fields": fields})


def _too_large(most: int) -> str:
    return f"a request may have at most {most:,} bytes; send less at once"


class _Headers:
    """Reads the headers of a request. One that must occur once but is repeated reads as "", which nothing accepts."""

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        self.values: dict[str, list[str]] = {}
        for name, value in raw:
            self.values.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1").strip())

    def only(self, name: str) -> str | None:
        values = self.values.get(name)
        if values is None:
            return None
        return values[0] if len(values) == 1 else ""

    def key(self) -> str | None:
        kind, _, key = (self.only("authorization") or "").partition(" ")
        return key.strip() if kind.lower() == "bearer" else self.only("x-api-key")


def _host_name(host: str) -> str | None:
    """Takes the name from a Host header: `example.org:80` is `example.org`, `[::1]:80` is `::1`; None if malformed."""
    try:
        parts = urlsplit(f"//{host}")
        plain = parts.netloc == host and "@" not in host and not parts.path
        parts.port  # noqa: B018 (a wrong port raises)
        return (parts.hostname or None) if plain else None
    except ValueError:
        return None


def _cross_site(method: str, headers: _Headers, host: str) -> bool:
    """Tells whether another site caused the request: browsers say so, other programs send none of these headers."""
    origin = headers.only("origin")
    if origin is not None and not _same_origin(origin, host):
        return True
    site = headers.only("sec-fetch-site")
    if site is None or site in ("same-origin", "none"):
        return False
    # A link on another site may lead to the page: it loads the page, and the other site learns nothing from it.
    mode, kind = headers.only("sec-fetch-mode"), headers.only("sec-fetch-dest")
    return not (method == "GET" and mode == "navigate" and kind == "document")


def _same_origin(origin: str, host: str) -> bool:
    """Compares name and port with the Host header; the scheme may differ, because of a proxy that speaks TLS."""
    scheme, separator, rest = origin.partition("://")
    if separator != "://" or scheme not in ("http", "https"):
        return False
    standard = {"http": ":80", "https": ":443"}[scheme]
    return rest.lower().removesuffix(standard) == host.lower().removesuffix(standard)


class _GuardedReceive:
    """Receives a body within its limits of size and time; afterwards it only reports that the client leaves."""

    def __init__(self, receive: Receive, guard: Guard, path: str) -> None:
        self.receive, self.guard, self.complete = receive, guard, False
        self.most, self.received = guard.upload_limits.get(path, MAX_BODY), 0
        self.holds = path in guard.upload_limits
        self.deadline = time.monotonic() + guard.limits.arrival

    async def __call__(self) -> Message:
        if self.complete:
            return await self.receive()
        try:
            async with asyncio.timeout(self.deadline - time.monotonic()):
                message = await self.receive()
        except TimeoutError:
            raise RequestError(408, "the request did not arrive in time") from None
        if message["type"] == "http.disconnect":
            raise ClientLeft
        size = len(message.get("body", b""))
        self.received += size
        if self.holds:
            self.guard.uploaded += size
        if self.received > self.most:
            raise RequestError(413, _too_large(self.most))
        if self.holds and self.guard.uploaded > self.guard.limits.uploads:
            raise RequestError(429, MANY_UPLOADS)
        self.complete = not message.get("more_body", False)
        return message

    def release(self) -> None:
        """Counts the body as gone; the request is over."""
        if self.holds:
            self.guard.uploaded -= self.received


class _GuardedSend:
    """Sends an answer with the headers that every answer has."""

    def __init__(self, send: Send, guard: Guard, path: str) -> None:
        self.send, self.guard, self.path, self.status = send, guard, path, 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            present = {name for name, _ in message["headers"]}
            extra = [(name, value) for name, value in HEADERS if name not in present]
            if b"content-security-policy" not in present:
                extra.append((b"content-security-policy", STRICT))
            if self.guard.draining or self.status in (408, 413):
                extra.append((b"connection", b"close"))
            message = {**message, "headers": [*message["headers"], *extra]}
        await self.send(message)

    async def refuse(self, status: int, message: str) -> None:
        body = json.dumps(error_content(status, message, is_openai(self.path))).encode()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **error_headers(status)}
        raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await self({"type": "http.response.start", "status": status, "headers": raw})
        await self({"type": "http.response.body", "body": body})
