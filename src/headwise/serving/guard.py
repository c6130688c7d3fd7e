"""Everything that happens to a request before its handler and to every answer after: one piece of pure ASGI.

Who may ask: the Host must be a name of this server (else a foreign page could rebind its own name to this address);
what a browser sends on behalf of another site is refused (Origin, Sec-Fetch-Site); a key is compared in constant time.
How much: a body is counted as it is read, and must have come within a time.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import logging
import time
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headwise.serving.errors import Gone, Refusal, problem_headers
from headwise.serving.limits import MAX_BODY, Limits
from headwise.serving.metrics import Metrics

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
# Answered without a key: the page itself, signs of life, and what tells a client that it needs a key.
OPEN = frozenset({"/", "/favicon.ico", "/health/live", "/health/ready", "/languages", "/frontend/settings"})
# Their key may be in the body; the handler looks for it.
KEY_IN_BODY = frozenset({"/translate", "/detect"})
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
STRICT = b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

TOO_LARGE = f"a request may have {MAX_BODY:,} bytes"

log = logging.getLogger("headwise.access")


@dataclass(frozen=True)
class Doors:
    """Who may come in."""

    hosts: frozenset[str] = LOOPBACK
    any_address: bool = False  # IP addresses as Host: no name, so nothing that could be rebound
    keys: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, host: str, allowed: Iterable[str] = (), keys: Iterable[str] = ()) -> Doors:
        wildcard = host in ("0.0.0.0", "::", "")
        bound = () if wildcard else (host,)
        names = {name.lower().strip("[]") for name in (*bound, *allowed)}
        return cls(LOOPBACK | names, wildcard, tuple(keys))

    def knows(self, host: str) -> bool:
        if host in self.hosts:
            return True
        if not self.any_address:
            return False
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return False
        return True

    def opens(self, key: str | None) -> bool:
        """Every key is compared, each in constant time."""
        if not self.keys:
            return True
        given = (key or "").encode("utf-8", "surrogatepass")
        same = [hmac.compare_digest(given, own.encode()) for own in self.keys]
        return any(same)


class Guard:
    """Wraps the application."""

    def __init__(self, app: ASGIApp, doors: Doors, limits: Limits, metrics: Metrics) -> None:
        self.app, self.doors, self.limits, self.metrics = app, doors, limits, metrics
        self.draining = False
        self.in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        began = time.monotonic()
        answer = _Answer(send, self)
        self.in_flight += 1
        try:
            problem = self._problem(scope)
            if problem is not None:
                await answer.refuse(*problem)
            else:
                await self.app(scope, _Body(receive, self.limits), answer)
        finally:
            self.in_flight -= 1
            self._note(scope, answer.status, time.monotonic() - began)

    def _problem(self, scope: Scope) -> tuple[int, str] | None:
        headers = _Headers(scope["headers"])
        if self.draining and not scope["path"].startswith("/health/"):
            return 503, "the server is shutting down"
        host = headers.only("host")
        name = _host_name(host) if host is not None else None
        if name is None or not self.doors.knows(name):
            return 403, "this server does not go by the name in the Host header; start it with --allow-host NAME"
        if _cross_site(scope["method"], headers, str(host)):
            return 403, "requests from other sites are refused"
        length = headers.only("content-length")
        if length is not None and (not length.isdecimal() or int(length[:20]) > MAX_BODY):
            return 413, TOO_LARGE
        scope["headwise.authorized"] = self.doors.opens(headers.key())
        path = scope["path"]
        if not scope["headwise.authorized"] and not (path in OPEN | KEY_IN_BODY or path.startswith("/page/")):
            return 401, "a valid API key is needed: send it as 'Authorization: Bearer KEY' or 'X-API-Key: KEY'"
        return None

    def _note(self, scope: MutableMapping[str, Any], status: int, seconds: float) -> None:
        """The path of the route, not of the request: neither queries nor names end up in a log."""
        route = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if scope["method"] in ("GET", "HEAD", "POST", "OPTIONS") else "other"
        self.metrics.requests.labels(route, method, status).inc()
        self.metrics.seconds.labels(route).observe(seconds)
        client = (scope.get("client") or ("-",))[0]
        log.info("%s %s %s %d %.1f ms", client, method, route, status, seconds * 1000)


class _Headers:
    """Of a request; a header that must not be repeated and is counts as one that says something impossible."""

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
    """`example.org:80` is `example.org`, `[::1]:80` is `::1`; None for what is no host."""
    try:
        parts = urlsplit(f"//{host}")
        plain = parts.netloc == host and "@" not in host and not parts.path
        parts.port  # noqa: B018 (a wrong port raises)
        return (parts.hostname or None) if plain else None
    except ValueError:
        return None


def _cross_site(method: str, headers: _Headers, host: str) -> bool:
    """A browser says where a request comes from; programs that are no browsers say nothing, and mean themselves."""
    origin = headers.only("origin")
    if origin is not None and not _same_origin(origin, host):
        return True
    site = headers.only("sec-fetch-site")
    if site is None or site in ("same-origin", "none"):
        return False
    # A link to the page may stand anywhere; it loads the page, and tells the site with the link nothing.
    mode, kind = headers.only("sec-fetch-mode"), headers.only("sec-fetch-dest")
    return not (method == "GET" and mode == "navigate" and kind == "document")


def _same_origin(origin: str, host: str) -> bool:
    """Behind a proxy the scheme may differ from what is seen here; name and port must be those of the Host."""
    scheme, separator, rest = origin.partition("://")
    if separator != "://" or scheme not in ("http", "https"):
        return False
    standard = {"http": ":80", "https": ":443"}[scheme]
    return rest.lower().removesuffix(standard) == host.lower().removesuffix(standard)


class _Body:
    """`receive`, counted and timed while the body comes; then it tells when the client leaves."""

    def __init__(self, receive: Receive, limits: Limits) -> None:
        self.receive, self.left, self.complete = receive, MAX_BODY, False
        self.deadline = time.monotonic() + limits.arrival

    async def __call__(self) -> Message:
        if self.complete:
            return await self.receive()
        try:
            async with asyncio.timeout(self.deadline - time.monotonic()):
                message = await self.receive()
        except TimeoutError:
            raise Refusal(408, "the request did not arrive in time") from None
        if message["type"] == "http.disconnect":
            raise Gone
        self.left -= len(message.get("body", b""))
        if self.left < 0:
            raise Refusal(413, TOO_LARGE)
        self.complete = not message.get("more_body", False)
        return message


class _Answer:
    """`send`, with the headers that every answer has."""

    def __init__(self, send: Send, guard: Guard) -> None:
        self.send, self.guard, self.status = send, guard, 0

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

    async def refuse(self, status: int, problem: str) -> None:
        body = json.dumps({"error": problem}).encode()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **problem_headers(status)}
        raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await self({"type": "http.response.start", "status": status, "headers": raw})
        await self({"type": "http.response.body", "body": body})
