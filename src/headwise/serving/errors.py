"""Answers that are no success: a status and one line."""

from __future__ import annotations

from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from headwise.errors import HeadwiseError
from headwise.serving.batch_queue import Busy, Closing

CLIENT_LEFT = 499  # seen in the log only


class Refusal(Exception):
    """What a client is told instead of an answer."""

    def __init__(self, status: int, problem: str) -> None:
        super().__init__(problem)
        self.status, self.problem = status, problem


class Gone(Refusal):
    """The client left."""

    def __init__(self) -> None:
        super().__init__(CLIENT_LEFT, "the client left")


def refusal(error: Exception) -> Refusal:
    """What an error means to a client. Only errors that are meant for users tell their text."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, Busy):
        return Refusal(429, str(error))
    if isinstance(error, Closing):
        return Refusal(503, str(error))
    if isinstance(error, TimeoutError):
        return Refusal(504, "the answer was not ready in time; ask for less at once, or try again later")
    if isinstance(error, HTTPException):
        return Refusal(error.status_code, str(error.detail))
    if isinstance(error, HeadwiseError):
        return Refusal(400, str(error))
    return Refusal(503, f"the engine failed ({type(error).__name__}); the server's log says more")


def problem_headers(status: int) -> dict[str, str]:
    if status == 401:
        return {"WWW-Authenticate": "Bearer"}
    return {"Retry-After": "1"} if status in (429, 503) else {}


def response(refused: Refusal, openai: bool = False) -> JSONResponse:
    """With `openai` in the form that OpenAI's clients read."""
    kind = "server_error" if refused.status >= 500 else "invalid_request_error"
    told = {"message": refused.problem, "type": kind, "param": None, "code": None} if openai else refused.problem
    return JSONResponse({"error": told}, refused.status, problem_headers(refused.status))
