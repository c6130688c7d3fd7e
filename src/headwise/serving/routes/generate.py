"""Routes for language models: text that continues a prompt, at once or as a stream."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal, cast

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import BaseModel, Field, StringConstraints, model_validator

from headwise.serving.app_state import AppState
from headwise.serving.errors import RequestError, as_request_error
from headwise.serving.limits import Limits
from headwise.serving.model_index import ModelIndex, listed, queue_by_name
from headwise.serving.requests import ERROR_RESPONSES, body_schema, event, read_body, unless_client_leaves
from headwise.serving.routes import MakeQueue
from headwise.serving.routes.generation_model import GenerationModel, TextChunk, stream_text
from headwise.serving.schemas import Name, RequestBody, Seed, Text, Whole
from headwise.serving.streams import STREAM, begun
from headwise.tasks.generate import TASK, ServedGenerator

MAX_TOKENS = 2_048  # per sample
MAX_SAMPLES = 8
MAX_GENERATED = 4 * MAX_TOKENS  # all samples of a request together
MAX_STOPS = 4
MAX_STOP = 100  # characters of a stop string

Stop = Annotated[str, StringConstraints(min_length=1, max_length=MAX_STOP)]

router = APIRouter(default_response_class=Response)


def open_model(served: ServedGenerator, make_queue: MakeQueue, limits: Limits) -> GenerationModel:
    """Gives a language model as many threads as texts may be generated at the same time."""
    return GenerationModel(served, make_queue("write", limits.slots), make_queue("look", 1))


queue_of = {"/generate": queue_by_name(TASK.name)}


class GenerateBody(RequestBody):
    prompt: Text = ""
    model: Name | None = None
    max_tokens: Whole = Field(200, ge=1, le=MAX_TOKENS)
    temperature: float = Field(1.0, ge=0, le=100, allow_inf_nan=False, description="0 takes the likeliest token.")
    top_k: Whole = Field(0, ge=0, le=10**9, description="Choose among the k likeliest tokens; 0 is all.")
    top_p: float = Field(1.0, gt=0, le=1, allow_inf_nan=False)
    min_p: float = Field(0.0, ge=0, le=1, allow_inf_nan=False)
    repetition_penalty: float = Field(1.0, ge=0.01, le=100, allow_inf_nan=False)
    stop: list[Stop] = Field([], max_length=MAX_STOPS)
    seed: Seed | None = Field(None, description="The same seed gives the same text; a random one by default.")
    samples: Whole = Field(1, ge=1, le=MAX_SAMPLES)
    stream: bool = Field(False, description="Server-sent events, one sample only.")

    @model_validator(mode="after")
    def _bounded(self) -> GenerateBody:
        if self.stream and self.samples > 1:
            raise ValueError("a stream has one sample; set samples to 1")
        if self.samples * self.max_tokens > MAX_GENERATED:
            raise ValueError(f"samples × max_tokens may be at most {MAX_GENERATED:,}")
        return self

    def options(self) -> dict[str, Any]:
        """Makes the arguments of Writer.write; draws a seed where none is given."""
        names = ("samples", "max_tokens", "temperature", "top_k", "top_p", "min_p", "repetition_penalty", "stop")
        seed = secrets.randbelow(2**31) if self.seed is None else self.seed
        return {**{name: getattr(self, name) for name in names}, "seed": seed}


bodies = (GenerateBody,)


class Sample(BaseModel):
    text: str
    tokens: int
    stopped: Literal["length", "stop"]


class GenerateAnswer(BaseModel):
    model: str
    samples: list[Sample]


def generators(index: ModelIndex) -> dict[str, GenerationModel]:
    """Finds the language models of a server."""
    return {model.facts.name: cast(GenerationModel, model) for model in index.of_task(TASK.name)}


@router.post(
    "/generate",
    responses={
        200: {
            "model": GenerateAnswer,
            "content": {STREAM: {"schema": {}}},
            "description": "The texts; with stream, events: {text} …, then {done, stopped}, or {error}.",
        },
        **ERROR_RESPONSES,
    },
    openapi_extra=body_schema(GenerateBody),
)
async def generate(request: Request) -> Response:
    """Lets a language model continue a prompt."""
    state = AppState.of(request)
    body = await read_body(request, GenerateBody)
    model = _choose(state.index, body.model)
    if body.stream:
        stream = await started(request, state, model, stream_text(model, body.prompt, body.options()))
        return StreamingResponse(_events(stream), media_type=STREAM)
    with state.count_rejections(model.facts.name):
        work = model.generate(body.prompt, body.options())
        written = await unless_client_leaves(request, work, state.limits.timeout)
    state.metrics.tokens.labels(model.facts.name).inc(sum(len(one.ids) for one in written))
    samples = [
        {"text": one.text, "tokens": len(one.ids), "stopped": "stop" if one.stopped else "length"} for one in written
    ]
    return JSONResponse({"model": model.facts.name, "samples": samples})


def _choose(index: ModelIndex, name: str | None) -> GenerationModel:
    """Finds a language model by name; without a name it is the first."""
    found = generators(index)
    if name is None:
        if not found:
            raise RequestError(400, "this server has no language model")
        return next(iter(found.values()))
    model = index.by_name(name)
    if model.facts.name not in found:
        raise RequestError(400, f"this model does not generate text; those that do are {listed(found)}")
    return found[name]


async def started(
    request: Request, state: AppState, model: GenerationModel, stream: AsyncIterator[TextChunk]
) -> AsyncIterator[TextChunk]:
    """Waits for the first chunk, so that an error before it is answered with its own status; counts tokens."""
    chunks = await begun(request, state, model.facts.name, stream)
    tokens = state.metrics.tokens.labels(model.facts.name)

    async def rest() -> AsyncIterator[TextChunk]:
        try:
            async for chunk in chunks:
                if chunk.stopped:
                    tokens.inc(chunk.tokens)
                yield chunk
        finally:
            await chunks.aclose()  # type: ignore[attr-defined]

    return rest()


async def _events(stream: AsyncIterator[TextChunk]) -> AsyncIterator[bytes]:
    try:
        async for chunk in stream:
            if chunk.text:
                yield event({"text": chunk.text})
            if chunk.stopped:
                yield event({"done": True, "stopped": chunk.stopped})
    except Exception as error:
        yield event({"error": as_request_error(error).message})
    finally:
        await stream.aclose()  # type: ignore[attr-defined]
