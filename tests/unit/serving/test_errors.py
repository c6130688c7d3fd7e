from __future__ import annotations

import json

import pytest
from starlette.exceptions import HTTPException

from headwise.errors import UsageError
from headwise.serving.batch_queue import QueueFull, ShuttingDown
from headwise.serving.errors import RequestError, as_request_error, error_headers, error_response


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (RequestError(418, "a teapot"), 418, "a teapot"),
        (QueueFull("too many requests"), 429, "too many requests"),
        (ShuttingDown("shutting down"), 503, "shutting down"),
        (TimeoutError(), 504, "was not ready in time"),
        (HTTPException(405, "Method Not Allowed"), 405, "Method Not Allowed"),
        (UsageError("unknown engine"), 400, "unknown engine"),
        (ValueError("what the client's text said"), 503, "the engine failed (ValueError); see the server's log"),
    ],
)
def test_every_error_has_a_status_and_a_message_that_quotes_no_text(
    error: Exception, status: int, message: str
) -> None:
    found = as_request_error(error)
    assert found.status == status
    assert message in found.message
    assert "client's text" not in found.message


def test_an_answer_has_the_form_that_the_client_reads() -> None:
    plain, openai = (error_response(RequestError(429, "later"), openai=openai) for openai in (False, True))
    assert json.loads(plain.body) == {"error": "later"}
    assert json.loads(openai.body)["error"] == {
        "message": "later", "type": "invalid_request_error", "param": None, "code": None
    }  # fmt: skip
    assert plain.headers["retry-after"] == "1"
    assert error_headers(401) == {"WWW-Authenticate": "Bearer"}
    assert error_headers(400) == {}
