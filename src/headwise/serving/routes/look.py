"""The route /look: what a model attends to, for a model of any task."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import Field, StringConstraints

from headwise.look.page import allowed_hashes
from headwise.serving.app_state import AppState
from headwise.serving.batch_queue import BatchQueue
from headwise.serving.model_index import ModelIndex
from headwise.serving.requests import ERROR_RESPONSES, body_schema, read_body, unless_client_leaves
from headwise.serving.schemas import Name, RequestBody

MAX_LOOK = 400  # characters: the page grows with the square of the length
router = APIRouter(default_response_class=Response)


def _queue_of(index: ModelIndex, fields: dict[str, Any]) -> BatchQueue | None:
    name = fields.get("model")
    return next((model.side_queue for model in index.models.values() if name in (None, model.facts.name)), None)


queue_of = {"/look": _queue_of}


class LookBody(RequestBody):
    text: Annotated[str, StringConstraints(min_length=1, max_length=MAX_LOOK, pattern=r"\S")]
    target: Annotated[str, StringConstraints(max_length=MAX_LOOK)] | None = Field(
        None, description="Look at this output, for a translation; without it, at the model's own."
    )
    model: Name | None = None


bodies = (LookBody,)


@router.post(
    "/look",
    responses={
        200: {"content": {"text/html": {"schema": {"type": "string"}}}, "description": "A page in one file."},
        **ERROR_RESPONSES,
    },
    openapi_extra=body_schema(LookBody),
)
async def look(request: Request) -> HTMLResponse:
    """Shows the attention of a model at work on a text, as a page to explore."""
    state = AppState.of(request)
    body = await read_body(request, LookBody)
    model = state.index.any(body.model)
    with state.count_rejections(model.facts.name):
        page = await unless_client_leaves(request, model.look(body.text, body.target), state.limits.timeout)
    script, style = allowed_hashes()
    policy = (
        f"default-src 'none'; script-src {script}; style-src {style}; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'self'; sandbox allow-scripts"
    )
    return HTMLResponse(page, headers={"Content-Security-Policy": policy})
