from __future__ import annotations

import asyncio
import tempfile
from typing import Any

import pytest
from fastapi import Request
from pydantic import BaseModel

from headwise.serving.errors import RequestError
from headwise.serving.uploads import Uploaded, from_base64, is_upload, read_upload


class Fields(BaseModel):
    top: int = 1


def form(*parts: tuple[str, bytes]) -> bytes:
    return (
        b"".join(
            f"--x\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode() + content + b"\r\n"
            for head, content in parts
        )
        + b"--x--\r\n"
    )


def read(body: bytes, most: int = 1, kind: str = "multipart/form-data; boundary=x") -> Uploaded[Fields]:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    scope = {"type": "http", "headers": [(b"content-type", kind.encode())]}
    request = Request(scope, receive)  # type: ignore[arg-type]
    assert is_upload(request)
    return asyncio.run(read_upload(request, Fields, "file", most))


def test_files_and_fields_are_read_and_nothing_is_written_to_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_disk(*arguments: object, **options: object) -> None:
        raise AssertionError("a file was written to disk")

    monkeypatch.setattr(tempfile, "TemporaryFile", no_disk)
    large = b"z" * 5_000_000
    found = read(form(('name="top"', b"3"), ('name="file"; filename="a"', large)))
    assert (found.fields.top, found.files) == (3, [large])


@pytest.mark.parametrize(
    ("body", "part"),
    [
        (form(('name="top"', b"3")), "missing file parameter"),
        (form(('name="file"', b"text")), "missing file parameter, which must be a file"),
        (form(('name="other"; filename="a"', b"")), "send files in the field file"),
        (form(*[('name="file"; filename="a"', b"")] * 2), "Too many files"),
        (form(('name="file"; filename="a"', b""), ('name="top"', b"many")), "top: Input should be a valid integer"),
        (form(('name="file"; filename="a"', b""), *[('name="top"', b"1")] * 2), "given twice"),
        (form(('name="file"; filename="a"', b""), ('name="top"', b"1" * 20_000)), "maximum size of 16KB"),
        (b"nothing", "the form cannot be read"),
    ],
)
def test_a_wrong_form_is_refused_with_its_mistake(body: bytes, part: str) -> None:
    with pytest.raises(RequestError, match=part) as caught:
        read(body)
    assert caught.value.status == 400


def test_base64_may_be_a_data_url() -> None:
    assert from_base64("aGk=") == from_base64("data:image/png;base64,aGk=") == b"hi"
    for wrong in ("aGk", "a b c d", "data:image/png,aGk=", "ü"):
        with pytest.raises(RequestError, match="encoded as base64"):
            from_base64(wrong)
