"""The route /v1/embeddings for OpenAI's clients."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal, cast

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, model_validator

from headwise.serving.app_state import AppState
from headwise.serving.errors import RequestError
from headwise.serving.model_index import listed, queue_by_name
from headwise.serving.requests import body_schema, read_body, unless_client_leaves
from headwise.serving.routes.embed import MAX_CHARACTERS, MAX_TEXTS, Encoding, json_of_parts, written_vectors
from headwise.serving.routes.encoder_model import EmbedderModel
from headwise.serving.routes.openai import V1_ERRORS
from headwise.serving.schemas import Name, Text, Whole, check_characters
from headwise.tasks.embed import TASK

router = APIRouter(prefix="/v1", default_response_class=Response)
queue_of = {"/v1/embeddings": queue_by_name(TASK.name)}


class EmbeddingsBody(BaseModel):
    """Accepts OpenAI's fields; one that is not supported must have the value that changes nothing."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    model: Name
    input: Text | Annotated[list[Text], Field(min_length=1, max_length=MAX_TEXTS)]
    encoding_format: Encoding | None = "float"
    dimensions: Annotated[Whole, Field(ge=1, le=10**6)] | None = Field(
        None, description="Must be the model's own number of dimensions."
    )
    user: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _texts(cls, values: Any) -> Any:
        """Refuses token ids with a reason: they are those of OpenAI's tokenizer."""
        given = values.get("input") if isinstance(values, dict) else None
        if isinstance(given, list) and given and isinstance(given[0], int | list):
            raise ValueError("input must be text: token ids belong to another model's tokenizer")
        return values

    @model_validator(mode="after")
    def _bounded(self) -> EmbeddingsBody:
        check_characters(self.texts, MAX_CHARACTERS)
        return self

    @property
    def texts(self) -> list[str]:
        return [self.input] if isinstance(self.input, str) else self.input


bodies = (EmbeddingsBody,)


class Embedding(BaseModel):
    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingsUsage(BaseModel):
    prompt_tokens: int
    total_tokens: int


class EmbeddingsAnswer(BaseModel):
    object: Literal["list"]
    model: str
    usage: EmbeddingsUsage
    data: list[Embedding]


@router.post(
    "/embeddings",
    responses={200: {"model": EmbeddingsAnswer}, **V1_ERRORS},
    openapi_extra=body_schema(EmbeddingsBody),
)
async def embeddings(request: Request) -> Response:
    """Turns texts into vectors, with OpenAI's fields."""
    state = AppState.of(request)
    body = await read_body(request, EmbeddingsBody)
    found = {model.facts.name: cast(EmbedderModel, model) for model in state.index.of_task(TASK.name)}
    if body.model not in found:
        raise RequestError(404, f"there is no such model of sentence vectors; there are {listed(found)}")
    with state.count_rejections(body.model):
        work = found[body.model].embed(body.texts)
        vectors, tokens = await unless_client_leaves(request, work, state.limits.timeout)
    if body.dimensions not in (None, len(vectors[0])):
        raise RequestError(400, f"this model's vectors have {len(vectors[0])} dimensions; leave dimensions out")
    written = await asyncio.to_thread(written_vectors, vectors, body.encoding_format or "float")
    data = [f'{{"object": "embedding", "index": {n}, "embedding": {one}}}' for n, one in enumerate(written)]
    head = {"object": "list", "model": body.model, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}}
    return json_of_parts(head, "data", data)
