from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from headwise.serving.access import AccessRules
from headwise.serving.guard import Guard
from headwise.serving.limits import MAX_BODY, Limits
from headwise.serving.prometheus import Metrics

KEY = "a-key-that-nobody-guesses"


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    """The application: reads the body and says how long it was."""
    length, more = 0, True
    while more:
        message = await receive()
        length, more = length + len(message.get("body", b"")), message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(length).encode()})


def guard(*, keys: tuple[str, ...] = (), limits: Limits | None = None) -> Guard:
    rules = AccessRules.of("127.0.0.1", keys=keys)
    return Guard(
        answer, rules, limits or Limits(), Metrics(), frozenset({"/open"}), upload_limits={"/file": 2 * MAX_BODY}
    )


def ask(guarded: Guard, path: str = "/", method: str = "GET", body: bytes = b"", **headers: str) -> tuple[int, Any]:
    """The status and headers of the answer, and its body."""
    given = {"host": "127.0.0.1:8000", **{name.replace("_", "-"): value for name, value in headers.items()}}
    scope = {
        "type": "http", "path": path, "method": method,
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
    }  # fmt: skip
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(guarded(scope, receive, send))
    told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], (told, sent[1]["body"])


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1", 200), ("localhost:8000", 200), ("evil.example", 403), ("127.0.0.1@evil.example", 403), ("", 403)],
)
def test_the_host_must_be_a_name_of_this_server(host: str, status: int) -> None:
    assert ask(guard(), host=host)[0] == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://127.0.0.1:8000"}, 200),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec_fetch_site": "same-origin"}, 200),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}, 200),
    ],
)
def test_what_another_site_causes_is_refused(headers: dict[str, str], status: int) -> None:
    assert ask(guard(), **headers)[0] == status


def test_a_key_is_asked_for_except_where_the_way_is_open() -> None:
    guarded = guard(keys=(KEY,))
    status, (headers, body) = ask(guarded)
    assert (status, headers["www-authenticate"]) == (401, "Bearer")
    assert "a valid API key is needed" in json.loads(body)["error"]
    assert ask(guarded, authorization=f"Bearer {KEY}")[0] == ask(guarded, x_api_key=KEY)[0] == 200
    assert ask(guarded, authorization="Bearer another")[0] == 401
    assert ask(guarded, "/open")[0] == ask(guarded, "/page/page.js")[0] == 200


def test_a_large_body_is_refused_by_what_it_says_of_itself() -> None:
    assert ask(guard(), method="POST", body=b"abc")[1][1] == b"3"
    for length in (str(MAX_BODY + 1), "many", "9" * 40):
        status, (headers, _) = ask(guard(), method="POST", content_length=length)
        assert (status, headers["connection"]) == (413, "close")


def test_files_are_bounded_by_request_and_all_together() -> None:
    guarded = guard(limits=Limits(uploads=3 * MAX_BODY))
    assert ask(guarded, "/file", "POST", b"x" * (2 * MAX_BODY))[1][1] == str(2 * MAX_BODY).encode()
    assert ask(guarded, "/file", "POST", content_length=str(2 * MAX_BODY + 1))[0] == 413
    assert ask(guarded, "/", "POST", content_length=str(MAX_BODY + 1))[0] == 413
    assert guarded.uploaded == 0, "what was answered is held no longer"
    guarded.uploaded = 2 * MAX_BODY  # others are at work
    status, (headers, _) = ask(guarded, "/file", "POST", content_length=str(MAX_BODY + 1))
    assert (status, headers["retry-after"]) == (429, "1")
    assert ask(guarded, "/", "POST", b"x")[0] == 200, "other requests go on"
    assert ask(guarded, "/file", "POST", b"x" * MAX_BODY)[0] == 200
    assert ask(guarded, "/file", "POST", b"x" * (MAX_BODY + 1))[0] == 503  # without an application that says 429
    assert guarded.uploaded == 2 * MAX_BODY


def test_every_answer_has_the_headers_that_protect_it_and_is_counted() -> None:
    guarded = guard()
    _, (headers, _) = ask(guarded)
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"].startswith("default-src 'none'")
    guarded.draining = True
    status, (headers, _) = ask(guarded)
    assert (status, headers["connection"], headers["retry-after"]) == (503, "close", "1")
    assert guarded.in_flight == 0
    assert b'headwise_requests_total{method="GET",route="unknown",status="503"} 1.0' in guarded.metrics.text()
