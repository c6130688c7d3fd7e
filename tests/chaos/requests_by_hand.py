"""Requests that no client should send, drawn at random: from the server's own schema, altered at every level.

A request is drawn in this order: a route (of the schema, or one that is hidden or does not exist), a body that fits
its schema, some alterations of its fields, an encoding, and alterations of the bytes, of the headers, or of the method.
"""

from __future__ import annotations

import base64
import json
import random
import struct
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from raw_client import request

TEXTS = (
    "", " ", "one two", "red dog\nblue cat", "<p>red <b>dog</b></p>", "{name} %s {{x}} <x/>", "\u202eabc\u202c", "\x00",
    "a\u0301" * 50, "🦓" * 40, "\ufeffone", "one " * 200, "'\"\\;--", "../../etc/passwd", "[MASK]", "</s><s><pad>",
    "\r\n\r\n", "\ud800", "١٢٣", "ß" * 300, "http://a.b/c?d=e", "𝒳" * 20, "\t" * 100,
)  # fmt: skip
MODELS = ("words", "letters", "kinds", "stripes", "gaps", "vectors", "tones")
NUMBERS = (0, 1, -1, 2, 3, 1.0, 0.5, 1e-9, 1e9, -1e9, 2**31, 2**63, -(2**63), 2**64, 10**30, 1e308, 1.5)
ODD: tuple[Any, ...] = (
    None, True, False, [], {}, [[]], [None], {"": None}, [{"a": []}], *NUMBERS, *TEXTS, ["one"] * 101, {"a": "b"},
    float("nan"), float("inf"), float("-inf"),
)  # fmt: skip
HIDDEN = ("/", "/spec", "/favicon.ico", "/page/app.js", "/page/../../config.json", "/page/%2e%2e/%2e%2e/x", "/docs",
          "/redoc", "/v1/chat/completions", "/v1/responses", "/openapi.json", "/no/such/route", "/health/", "//", "/*",
          "/%00", "/%ff", "/" + "a" * 4000, "/translate/", "/TRANSLATE", "/metrics?x=%",
          "/v1/models/%2e%2e", "/runs/..%2f..")  # fmt: skip
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAQAAAAECAAAAACMmsGiAAAAEElEQVR4nGOMYmBgYGJAIQAHEgBiAf1cvgAAAABJRU5ErkJggg=="
)
SOUND = b"".join((
    b"RIFF", struct.pack("<I", 8036), b"WAVEfmt ", struct.pack("<IHHIIHH", 16, 1, 1, 16000, 32000, 2, 16),
    b"data", struct.pack("<I", 8000), bytes(range(250)) * 32,
))  # fmt: skip
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "FOO", "CONNECT")
HEADERS: tuple[Mapping[str, str], ...] = (
    {"Host": ""}, {"Host": "evil.example"}, {"Host": "127.0.0.1, evil"}, {"Host": "[::1"}, {"Host": "127.0.0.1:99999"},
    {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Content-Type": ""}, {"Content-Type": "text/plain"}, {"Content-Type": "application/json; charset=utf-16"},
    {"Content-Type": "multipart/form-data"}, {"Content-Type": "multipart/form-data; boundary="},
    {"Content-Type": "multipart/form-data; boundary=" + "x" * 300}, {"Content-Encoding": "gzip"},
    {"Accept": "image/png"}, {"Accept-Encoding": "br;q=1,gzip;q=0"}, {"Authorization": "Bearer"},
    {"Authorization": "Bearer ÿ"},
    {"X-API-Key": "x" * 5000}, {"Cookie": "a=b; " * 500}, {"Expect": "100-continue"}, {"Expect": "nothing"},
    {"Connection": "close"}, {"Range": "bytes=0-1"}, {"X-Forwarded-For": "1.2.3.4, ::1, x"},
    {"Transfer-Encoding": "identity"},
    {"If-None-Match": '"x"'}, {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": "x"},
)  # fmt: skip


class Draw:
    """Draws requests from a schema with a generator of random numbers."""

    def __init__(self, schema: Mapping[str, Any], choose: random.Random) -> None:
        self.schema, self.choose = schema, choose
        self.routes = [
            (method.upper(), path, operation) for path, methods in schema["paths"].items()
            for method, operation in methods.items()
        ]  # fmt: skip

    def one(self) -> bytes:
        """Draws a whole request."""
        chance = self.choose.random()
        if chance < 0.1:
            return request(self.choose.choice(METHODS), self.choose.choice(HIDDEN), self._json(self._odd()))
        method, path, operation = self.choose.choice(self.routes)
        path = self._path(path, operation)
        content = operation.get("requestBody", {}).get("content", {})
        body, headers = b"", {}
        if content:
            kind = self.choose.choice(list(content))
            value = self._value(content[kind]["schema"])
            # Routes that take files get their fields as JSON too, or as whatever `_encoded` makes of them.
            whole = kind == "multipart/form-data" and isinstance(value, dict) and self.choose.random() < 0.7
            body, headers = self._with_files(value, content[kind]["schema"]) if whole else self._encoded(value)
        if chance < 0.2:
            method = self.choose.choice(METHODS)
        elif chance < 0.35:
            headers = {**headers, **self.choose.choice(HEADERS)}
        elif chance < 0.45:
            body = self._damaged(body)
        return request(method, path, body, headers)

    # ---- values

    def _value(self, schema: Mapping[str, Any]) -> Any:
        """A value that fits the schema, or one with some odd parts."""
        if "$ref" in schema:
            schema = self.schema["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
        if options := schema.get("anyOf"):
            return self._value(self.choose.choice(options))
        if "enum" in schema or "const" in schema:
            return self.choose.choice(schema.get("enum") or [schema["const"]])
        make: dict[str, Callable[[], Any]] = {
            "object": lambda: self._object(schema),
            "array": lambda: [self._value(schema.get("items", {})) for _ in range(self.choose.randint(0, 3))],
            "string": lambda: self.choose.choice(("en", "de", "auto", *MODELS, *TEXTS)),
            "integer": lambda: self.choose.choice((schema.get("minimum", 0), 1, 2, 5, schema.get("maximum", 9))),
            "number": lambda: self.choose.choice((schema.get("minimum", 0), 0.5, 1.0, schema.get("maximum", 1))),
            "boolean": lambda: self.choose.random() < 0.5,
        }
        return make.get(schema.get("type", ""), self._odd)()

    def _object(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        properties, required = schema.get("properties", {}), schema.get("required", ())
        found = {
            name: self._value(inner) for name, inner in properties.items()
            if name in required or self.choose.random() < 0.3
        }  # fmt: skip
        if "source" in found:
            found |= {"source": "en", "target": "de"}
        if "model" in found:
            found["model"] = self.choose.choice(MODELS)
        if "max_tokens" in properties and self.choose.random() < 0.98:  # most are cheap, so that there can be many
            found["max_tokens"] = self.choose.choice((1, 2, 8))
        while found and self.choose.random() < 0.4:
            name = self.choose.choice([*found, "more", "__class__", ""])
            found[name] = self._odd()
        if found and self.choose.random() < 0.1:
            found.pop(self.choose.choice(list(found)))
        return found

    def _odd(self) -> Any:
        return self.choose.choice(ODD)

    # ---- bytes

    def _path(self, template: str, operation: Mapping[str, Any]) -> str:
        asked = []
        for parameter in operation.get("parameters", ()):
            value = quote(
                str(self._odd() if self.choose.random() < 0.5 else 0).encode("utf-8", "replace")[:300], safe=""
            )
            if parameter["in"] == "path":
                template = template.replace(f"{{{parameter['name']}}}", value or "x")
            else:
                asked.append(f"{parameter['name']}={value}")
        return f"{template}?{'&'.join(asked)}" if asked else template

    def _encoded(self, value: Any) -> tuple[bytes, dict[str, str]]:
        chance = self.choose.random()
        if chance < 0.8 or not isinstance(value, dict):
            return self._json(value), {}
        fields = {name: v if isinstance(v, str) else json.dumps(v) for name, v in value.items()}
        fields = {name: text.encode("utf-8", "replace").decode() for name, text in fields.items()}
        if chance < 0.9:
            return urlencode(fields).encode(), {"Content-Type": "application/x-www-form-urlencoded"}
        parts = "".join(
            f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n' for name, text in fields.items()
        )
        return f"{parts}--b--\r\n".encode(), {"Content-Type": "multipart/form-data; boundary=b"}

    def _with_files(self, fields: dict[str, Any], schema: Mapping[str, Any]) -> tuple[bytes, dict[str, str]]:
        """A form whose files are pictures and sounds, whole or damaged, or neither."""
        named = self.schema["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]["properties"]
        parts = []
        for name, value in fields.items():
            form = named.get(name, {})
            if "binary" in (form.get("format"), form.get("items", {}).get("format")):
                good = self.choose.choice((PICTURE, SOUND))
                file = self.choose.choice((good, good, good, self._damaged(good), b"", b"<html>"))
                parts.append(f'{name}"; filename="a'.encode() + b'"\r\n\r\n' + file)
            else:
                text = value if isinstance(value, str) else json.dumps(value)
                parts.append(f'{name}"\r\n\r\n{text}'.encode("utf-8", "replace"))
        body = b"".join(b'--b\r\nContent-Disposition: form-data; name="' + part + b"\r\n" for part in parts)
        return body + b"--b--\r\n", {"Content-Type": "multipart/form-data; boundary=b"}

    def _json(self, value: Any) -> bytes:
        escaped = self.choose.random() < 0.7
        return json.dumps(value, ensure_ascii=escaped).encode("utf-8", "surrogatepass")

    def _damaged(self, body: bytes) -> bytes:
        """The body cut, repeated, nested, or with a byte that is not UTF-8."""
        place = self.choose.randrange(len(body) + 1)
        return self.choose.choice((
            body[:place], body + body, body[:place] + b"\xff\xc0\x00" + body[place:], b"[" * 5000 + body,
            b"\xef\xbb\xbf" + body,
            body[:place] + b"\\ud800" + body[place:], b'{"q":' * 2000, body.replace(b'"', b"'"), b"\x1f\x8b" + body,
            b"9" * 20_000, b'"' + b"a" * 30_000 + b'"', body.replace(b",", b",,"),
        ))  # fmt: skip
