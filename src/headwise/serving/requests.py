"""From a request to what it asks, and from an answer to bytes; every mistake is one line with the right status."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError

from headwise.serving.errors import Gone, Refusal
from headwise.serving.guard import Doors
from headwise.serving.schemas import Problem

Q = TypeVar("Q", bound=BaseModel)
T = TypeVar("T")

JSON, FORMS = "application/json", ("application/x-www-form-urlencoded", "multipart/form-data")
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": text}
    for status, text in {
        400: "The request is wrong; the error says what.",
        401: "A valid API key is needed.",
        403: "Wrong Host, or a request from another site.",
        404: "There is no such thing.",
        408: "The request did not arrive in time.",
        413: "The request is too large.",
        415: "The body is of a kind that is not understood.",
        429: "The queue is full; try again after the time in Retry-After.",
        503: "The server is shutting down, or the engine failed.",
        504: "The answer was not ready in time.",
    }.items()
}


def body_schema(question: type[BaseModel], form: type[BaseModel] | None = None) -> dict[str, Any]:
    """The part of the OpenAPI schema that says what a body may be."""
    kinds = {JSON: question} if form is None else {JSON: question, **dict.fromkeys(FORMS, form)}
    content = {kind: {"schema": {"$ref": f"#/components/schemas/{body.__name__}"}} for kind, body in kinds.items()}
    return {"requestBody": {"required": True, "content": content}}


async def read(request: Request, question: type[Q], form: type[BaseModel] | None = None) -> Q:
    """The body as a question; with `form`, also one that an HTML form would send."""
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    try:
        if kind == JSON:
            return question.model_validate_json(await request.body(), strict=True)
        if form is not None and kind in FORMS:
            async with request.form(max_files=0, max_fields=20) as fields:
                return question.model_validate(form.model_validate({**fields}).model_dump())
    except ValidationError as error:
        raise Refusal(400, _one_line(error)) from None
    raise Refusal(415, f"the body must be {JSON}" + (" or a form" if form is not None else ""))


def check_key(request: Request, doors: Doors, key: str | None) -> None:
    if not request.scope.get("headwise.authorized") and not doors.opens(key):
        raise Refusal(401, "a valid API key is needed")


async def unless_gone(request: Request, work: Coroutine[Any, Any, T], timeout: float) -> T:
    """The work's result; the work is cancelled when the client leaves or the time is over."""
    task = asyncio.create_task(work)
    leaving = asyncio.create_task(_left(request))
    try:
        async with asyncio.timeout(timeout):
            await asyncio.wait((task, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise Gone
        return task.result()
    finally:
        task.cancel()
        leaving.cancel()


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _one_line(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"] if isinstance(part, int) or part.isidentifier())
    problem = " ".join(first["msg"].removeprefix("Value error, ").split())
    return f"{place}: {problem}" if place else problem


def event(value: dict[str, Any]) -> bytes:
    """A server-sent event."""
    return b"data: " + json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"
