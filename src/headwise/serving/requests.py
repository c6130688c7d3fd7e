"""Reads the bodies of requests, stops work for clients that leave, and formats events for streams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import Request
from pydantic import BaseModel, ValidationError

from headwise.serving.access import AccessRules
from headwise.serving.errors import ClientLeft, RequestError
from headwise.serving.schemas import ErrorAnswer

B = TypeVar("B", bound=BaseModel)
T = TypeVar("T")

JSON, URL_ENCODED, MULTIPART = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
FORMS = (URL_ENCODED, MULTIPART)
MAX_FIELDS = 20
ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer, "description": text}
    for status, text in {
        400: "The request is wrong; the error says what.",
        401: "A valid API key is needed.",
        403: "Wrong Host, or a request from another site.",
        404: "Not found.",
        408: "The request did not arrive in time.",
        413: "The request is too large.",
        415: "The content type of the body is not supported.",
        429: "The queue is full; try again after the time in Retry-After.",
        503: "The server is shutting down, or the engine failed.",
        504: "The answer was not ready in time.",
    }.items()
}


def body_schema(body: type[BaseModel], form: type[BaseModel] | None = None) -> dict[str, Any]:
    """Makes the part of the OpenAPI schema that describes the body of a route."""
    types = {JSON: body} if form is None else {JSON: body, **dict.fromkeys(FORMS, form)}
    content = {kind: {"schema": {"$ref": f"#/components/schemas/{one.__name__}"}} for kind, one in types.items()}
    return {"requestBody": {"required": True, "content": content}}


async def read_body(request: Request, body: type[B], form: type[BaseModel] | None = None) -> B:
    """Reads and validates the body: JSON, or with `form` also what an HTML form would send."""
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    try:
        if kind == JSON:
            return body.model_validate_json(await request.body(), strict=True)
        if form is not None and (kind in FORMS or not (kind or await request.body())):
            fields = await _multipart(request) if kind == MULTIPART else _url_encoded(await request.body())
            return body.model_validate(form.model_validate(fields).model_dump())
    except ValidationError as error:
        raise RequestError(400, one_line(error)) from None
    raise RequestError(415, f"the body must be {JSON}" + (" or a form" if form is not None else ""))


def _url_encoded(body: bytes) -> dict[str, Any]:
    """Reads a form. Starlette would read UTF-8 that is not percent-encoded, which curl sends, as Latin-1."""
    try:
        fields = parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except UnicodeDecodeError:
        raise RequestError(400, "the form is not UTF-8; encode it as UTF-8") from None
    except ValueError:
        raise RequestError(400, f"a form may have at most {MAX_FIELDS} fields") from None
    return once_each(fields)


async def _multipart(request: Request) -> dict[str, Any]:
    async with request.form(max_files=0, max_fields=MAX_FIELDS) as fields:
        return once_each([(name, str(value)) for name, value in fields.multi_items()])


def once_each(fields: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Makes a dictionary of a form's fields. None may be repeated, but for those named NAME[], which are lists."""
    lists = {name: [value for other, value in fields if other == name] for name, _ in fields if name.endswith("[]")}
    fields = [field for field in fields if field[0] not in lists]
    names = [name for name, _ in fields]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise RequestError(400, "a field of the form is given twice; send it once, or several texts as JSON")
    return {**dict(fields), **lists}


def check_key(request: Request, access: AccessRules, key: str | None) -> None:
    """Raises unless there is a valid key in the headers, which the guard has checked, or in the body."""
    if not request.scope.get("headwise.authorized") and not access.accepts_key(key):
        raise RequestError(401, "a valid API key is needed")


async def unless_client_leaves(request: Request, work: Coroutine[Any, Any, T], timeout: float) -> T:
    """Awaits the work; cancels it when the client leaves or the timeout has passed."""
    task = asyncio.create_task(work)
    leaving = asyncio.create_task(_disconnect(request))
    try:
        async with asyncio.timeout(timeout):
            await asyncio.wait((task, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientLeft
        return task.result()
    finally:
        task.cancel()
        leaving.cancel()


async def _disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def one_line(error: ValidationError) -> str:
    """Says what is wrong with the first wrong field, without its value."""
    errors = error.errors(include_url=False, include_input=False, include_context=False)
    same = [one for one in errors if one["loc"][:1] == errors[0]["loc"][:1]]
    # Where a text or a list is allowed, there is an error for each; the one that is not about the type says more.
    first = next((one for one in same if one["type"] not in ("string_type", "list_type")), errors[0])
    place = ".".join(str(part) for part in first["loc"] if isinstance(part, int) or part.isidentifier())
    if first["type"] == "missing":
        return f"Invalid request: missing {place} parameter"  # LibreTranslate's words
    problem = " ".join(first["msg"].removeprefix("Value error, ").split())
    return f"{place}: {problem}" if place else problem


def event(value: dict[str, Any]) -> bytes:
    """Formats a server-sent event."""
    return b"data: " + json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"
