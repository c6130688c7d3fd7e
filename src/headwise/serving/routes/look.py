"""The route /look: what a model attends to, for a model of any task."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel, Field, StringConstraints

from headwise.look.page import allowed_hashes
from headwise.serving.app_state import AppState
from headwise.serving.batch_queue import BatchQueue
from headwise.serving.errors import RequestError
from headwise.serving.model_index import ModelIndex
from headwise.serving.requests import ERROR_RESPONSES, read_body, unless_client_leaves
from headwise.serving.schemas import Name, RequestBody
from headwise.serving.served_models import FILES
from headwise.serving.uploads import File, is_upload, read_upload, upload_schema

MAX_LOOK = 400  # characters: the page grows with the square of the length
MAX_UPLOAD = 10 * 2**20  # bytes of a request with a picture or a sound
Target = Annotated[str, StringConstraints(max_length=MAX_LOOK)]
router = APIRouter(default_response_class=Response)


def _queue_of(index: ModelIndex, fields: dict[str, Any]) -> BatchQueue | None:
    name = fields.get("model")
    return next((model.side_queue for model in index.models.values() if name in (None, model.facts.name)), None)


queue_of = {"/look": _queue_of}
upload_limits = {"/look": MAX_UPLOAD}


class LookFields(RequestBody):
    """The fields of a form besides its file."""

    target: Target | None = Field(
        None, description="Look at this output, for a translation or a transcript, or at this label; without it, at "
        "the model's own."
    )  # fmt: skip
    model: Name | None = None
    format: Literal["page", "json"] = Field(
        "page", description="json: what in a text or a picture moved the label of a classifier, as numbers."
    )


class LookBody(LookFields):
    text: Annotated[str, StringConstraints(min_length=1, max_length=MAX_LOOK, pattern=r"\S")] = Field(
        description="For a model that reads pairs: both texts, with a tab between them."
    )


class LookForm(LookFields):
    file: File = Field(description="Of a model that reads pictures or sound; of a sound the first window is shown.")


bodies = (LookBody, LookForm)


class ValueMap(BaseModel):
    rows: int
    columns: int
    signed: bool
    values: str = Field(description="One byte per value in base64, row by row; 128 is zero, 255 the largest.")


class LookAnswer(BaseModel):
    label: str
    words: list[tuple[str, float]] | None = Field(None, description="Each word, and how much it raised the log-odds.")
    chance: float | None = None
    picture: str | None = Field(None, description="As the model read it: PNG in base64.")
    map: ValueMap | None = None


@router.post(
    "/look",
    responses={
        200: {
            "model": LookAnswer, "content": {"text/html": {"schema": {"type": "string"}}},
            "description": "A page in one file, or numbers.",
        },
        **ERROR_RESPONSES,
    },
    openapi_extra=upload_schema(LookBody, LookForm),
)  # fmt: skip
async def look(request: Request) -> Response:
    """Shows the attention of a model at work on a text, a picture or a sound, as a page to explore."""
    state = AppState.of(request)
    fields, item = await _read(request)
    model = state.index.any(fields.model)
    if isinstance(item, bytes) != (model.facts.reads in FILES):
        wanted = f"a form with {FILES[model.facts.reads]} in the field file" if isinstance(item, str) else "text"
        raise RequestError(400, f"this model reads something else: send {wanted}")
    work = model.explain if fields.format == "json" else model.look
    with state.count_rejections(model.facts.name):
        found = await unless_client_leaves(request, work(item, fields.target), state.limits.timeout)
    if isinstance(found, dict):
        return JSONResponse(found)
    script, style = allowed_hashes()
    policy = (
        f"default-src 'none'; img-src data:; script-src {script}; style-src {style}; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts"
    )
    return HTMLResponse(found, headers={"Content-Security-Policy": policy})


async def _read(request: Request) -> tuple[LookFields, str | bytes]:
    if is_upload(request):
        form = await read_upload(request, LookFields, "file")
        return form.fields, form.files[0]
    body = await read_body(request, LookBody)
    return body, body.text
