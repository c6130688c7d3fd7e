"""Reads files that clients send: parts of a form, or base64 in JSON. They stay in memory and are never written to disk.

The guard has bounded the size of the body, and of all bodies together, before anything is read here.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Request
from pydantic import BaseModel, Field, ValidationError
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from headwise.errors import DataError
from headwise.image.reading import BadPicture
from headwise.serving.errors import RequestError
from headwise.serving.requests import MAX_FIELDS, MULTIPART, once_each, one_line
from headwise.sound.reading import TooLong

F = TypeVar("F", bound=BaseModel)
MAX_FIELD = 16 * 1024  # bytes of a field that is not a file
# For the schema of a form; what it holds is read as bytes.
File = Annotated[str, Field(json_schema_extra={"format": "binary"})]


@dataclass(frozen=True)
class Uploaded(Generic[F]):
    """A form with files."""

    fields: F
    files: list[bytes]


class _InMemory(MultiPartParser):
    spool_max_size = 0  # never written to disk, whatever its size


def is_upload(request: Request) -> bool:
    """Tells whether the body is a form that may have files in it."""
    return request.headers.get("content-type", "").split(";")[0].strip().lower() == MULTIPART


async def read_upload(request: Request, form: type[F], field: str, most: int = 1) -> Uploaded[F]:
    """Reads a form with at least one file in `field`; the other fields are validated by `form`, which has no files."""
    parser = _InMemory(
        request.headers, request.stream(), max_files=most, max_fields=MAX_FIELDS, max_part_size=MAX_FIELD
    )
    try:
        parts = (await parser.parse()).multi_items()
    except MultiPartException as error:
        raise RequestError(400, f"the form cannot be read: {error.message}") from None
    files = []
    for name, part in parts:
        if isinstance(part, UploadFile):
            if name != field:
                raise RequestError(400, f"send files in the field {field}, and in no other")
            files.append(await part.read())
            await part.close()
    texts = [(name, part) for name, part in parts if isinstance(part, str)]
    if not files or any(name == field for name, _ in texts):
        raise RequestError(400, f"Invalid request: missing {field} parameter, which must be a file")
    try:
        return Uploaded(form.model_validate(once_each(texts)), files)
    except ValidationError as error:
        raise RequestError(400, one_line(error)) from None


def from_base64(text: str) -> bytes:
    """Decodes a file in JSON; the beginning of a data URL is allowed."""
    head, comma, _ = text[:200].partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        text = text[len(head) + 1 :]
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise RequestError(400, "a file in JSON must be encoded as base64") from None


def refused_file(error: DataError, what: str) -> RequestError:
    """Makes the refusal of a file that cannot be read, or is too large to be."""
    large = isinstance(error, TooLong) or (isinstance(error, BadPicture) and error.reason == "huge")
    return RequestError(413 if large else 400, f"{what} {error.problem}")


def upload_schema(body: type[BaseModel] | None, form: type[BaseModel]) -> dict[str, Any]:
    """Makes the part of the OpenAPI schema that describes a body: a form with files, or the same in JSON."""
    types = {MULTIPART: form} if body is None else {"application/json": body, MULTIPART: form}
    content = {kind: {"schema": {"$ref": f"#/components/schemas/{one.__name__}"}} for kind, one in types.items()}
    return {"requestBody": {"required": True, "content": content}}
