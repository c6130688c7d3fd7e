"""The route of sentence vectors, and the form in which vectors are sent."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal, cast

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field, model_validator

from headwise.serving.app_state import AppState
from headwise.serving.limits import Limits
from headwise.serving.model_index import queue_by_name
from headwise.serving.requests import ERROR_RESPONSES, JSON, body_schema, read_body, unless_client_leaves
from headwise.serving.routes import MakeQueue
from headwise.serving.routes.encoder_model import EmbedderModel, open_encoder
from headwise.serving.schemas import Name, RequestBody, Text, check_characters
from headwise.tasks.embed import TASK
from headwise.tasks.served_encoders import ServedEmbedder

MAX_TEXTS = 500  # per request
MAX_CHARACTERS = 100_000  # of all texts of a request: reading is far faster than writing

Encoding = Literal["float", "base64"]
router = APIRouter(default_response_class=Response)
queue_of = {"/embed": queue_by_name(TASK.name)}


def open_model(served: ServedEmbedder, make_queue: MakeQueue, limits: Limits) -> EmbedderModel:
    return open_encoder(EmbedderModel, served, make_queue, "embed")


class EmbedBody(RequestBody):
    text: Text | Annotated[list[Text], Field(min_length=1, max_length=MAX_TEXTS)] = Field(
        description=f"Text, or texts; together at most {MAX_CHARACTERS:,} characters. Of a text that is longer than "
        "the model reads, the beginning is embedded."
    )
    model: Name | None = None
    encoding: Encoding = Field(
        "float", description="float: numbers; base64: 32-bit floating-point numbers, little-endian, which is faster."
    )

    @model_validator(mode="after")
    def _bounded(self) -> EmbedBody:
        check_characters(self.texts, MAX_CHARACTERS)
        return self

    @property
    def texts(self) -> list[str]:
        return [self.text] if isinstance(self.text, str) else self.text


bodies = (EmbedBody,)


class EmbedAnswer(BaseModel):
    model: str
    dimensions: int
    tokens: int = Field(description="That were read.")
    vectors: list[list[float]] | list[str] = Field(description="One per text, of length 1: dot products are cosines.")


@router.post("/embed", responses={200: {"model": EmbedAnswer}, **ERROR_RESPONSES}, openapi_extra=body_schema(EmbedBody))
async def embed(request: Request) -> Response:
    """Turns texts into vectors; texts that mean the same have similar ones."""
    state = AppState.of(request)
    body = await read_body(request, EmbedBody)
    model = cast(EmbedderModel, state.index.choose(TASK.name, body.model))
    with state.count_rejections(model.facts.name):
        vectors, tokens = await unless_client_leaves(request, model.embed(body.texts), state.limits.timeout)
    head = {"model": model.facts.name, "dimensions": len(vectors[0]), "tokens": tokens}
    written = await asyncio.to_thread(written_vectors, vectors, body.encoding)
    return json_of_parts(head, "vectors", written)


def written_vectors(vectors: Sequence[Any], encoding: Encoding) -> list[str]:
    """Each vector as JSON. One at a time: a whole answer at once would keep the interpreter from all other requests."""
    if encoding == "base64":
        return [json.dumps(base64.b64encode(np.asarray(one, dtype="<f4").tobytes()).decode()) for one in vectors]
    return [json.dumps([round(number, 8) for number in one.tolist()], allow_nan=False) for one in vectors]


def json_of_parts(head: dict[str, Any], name: str, parts: Sequence[str]) -> Response:
    """Makes an answer of some fields and of a list whose parts are written already."""
    beginning = json.dumps(head, ensure_ascii=False)[:-1]
    return Response(f'{beginning}, "{name}": [{",".join(parts)}]}}', media_type=JSON)
