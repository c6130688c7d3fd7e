"""Errors as clients see them: a status and one line."""

from __future__ import annotations

from typing import Any

from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from headwise.errors import HeadwiseError, TooLarge
from headwise.serving.batch_queue import QueueFull, ShuttingDown

CLIENT_LEFT = 499  # no client sees it; it is for the log


class RequestError(Exception):
    """Ends a request with a status and a message for the client."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class ClientLeft(RequestError):
    """Ends a request whose client has closed the connection."""

    def __init__(self) -> None:
        super().__init__(CLIENT_LEFT, "the client left")


def as_request_error(error: Exception) -> RequestError:
    """Converts any error. Only messages that are written for users are shown; others may quote a text."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, QueueFull):
        return RequestError(429, str(error))
    if isinstance(error, ShuttingDown):
        return RequestError(503, str(error))
    if isinstance(error, TimeoutError):
        return RequestError(504, "the answer was not ready in time; ask for less at once, or try again later")
    if isinstance(error, HTTPException):
        return RequestError(error.status_code, str(error.detail))
    if isinstance(error, TooLarge):
        return RequestError(413, str(error))
    if isinstance(error, HeadwiseError):
        return RequestError(400, str(error))
    return RequestError(503, f"the engine failed ({type(error).__name__}); see the server's log")


def error_headers(status: int) -> dict[str, str]:
    if status == 401:
        return {"WWW-Authenticate": "Bearer"}
    return {"Retry-After": "1"} if status in (429, 503) else {}


def is_openai(path: str) -> bool:
    """Tells whether OpenAI's clients use this path."""
    return path.startswith("/v1/")


def error_content(status: int, message: str, openai: bool) -> dict[str, Any]:
    """Makes the JSON of an answer; with `openai` in the form that OpenAI's clients read."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": None} if openai else message}


def error_response(error: RequestError, openai: bool = False) -> JSONResponse:
    content = error_content(error.status, error.message, openai)
    return JSONResponse(content, error.status, error_headers(error.status))
