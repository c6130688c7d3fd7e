"""Writing on from a prompt: at once, or as it is written."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from headwise.serving.app_state import State
from headwise.serving.errors import refusal
from headwise.serving.requests import PROBLEMS, body_schema, event, read, unless_gone
from headwise.serving.schemas import GenerateAnswer, GenerateQuestion
from headwise.serving.served_models import GenerationModel
from headwise.serving.streaming import Piece, pieces

router = APIRouter(default_response_class=Response)
STREAM = "text/event-stream"


@router.post(
    "/generate",
    responses={
        200: {
            "model": GenerateAnswer,
            "content": {STREAM: {"schema": {}}},
            "description": "The texts; with stream, events: {text} …, then {done, stopped}, or {error}.",
        },
        **PROBLEMS,
    },
    openapi_extra=body_schema(GenerateQuestion),
)
async def generate(request: Request) -> Response:
    """Let a language model write on."""
    state = State.of(request)
    question = await read(request, GenerateQuestion)
    model = state.shelf.generator(question.model)
    options = options_of(question)
    if question.stream:
        stream = started(request, state, model, pieces(model, question.prompt, options))
        return StreamingResponse(_events(await stream), media_type=STREAM)
    with state.rejections(model.facts.name):
        written = await unless_gone(request, model.write(question.prompt, options), state.limits.timeout)
    state.metrics.tokens.labels(model.facts.name).inc(sum(len(writing.ids) for writing in written))
    samples = [
        {"text": one.text, "tokens": len(one.ids), "stopped": "stop" if one.stopped else "length"} for one in written
    ]
    return JSONResponse({"model": model.facts.name, "samples": samples})


def options_of(question: GenerateQuestion) -> dict[str, Any]:
    """Arguments of Generator.write."""
    names = ("samples", "max_tokens", "temperature", "top_k", "top_p", "min_p", "repetition_penalty", "stop")
    seed = secrets.randbelow(2**31) if question.seed is None else question.seed
    return {**{name: getattr(question, name) for name in names}, "seed": seed}


async def started(
    request: Request, state: State, model: GenerationModel, stream: AsyncIterator[Piece]
) -> AsyncIterator[Piece]:
    """The stream once its first piece is there: what goes wrong before has a status of its own."""
    deadline = asyncio.get_running_loop().time() + state.limits.timeout
    tokens = state.metrics.tokens.labels(model.facts.name)
    with state.rejections(model.facts.name):
        first = await unless_gone(request, _next(stream), state.limits.timeout)

    async def rest() -> AsyncIterator[Piece]:
        try:
            yield first
            async with asyncio.timeout_at(deadline):
                async for piece in stream:
                    if piece.stopped:
                        tokens.inc(piece.tokens)
                    yield piece
        finally:
            await stream.aclose()  # type: ignore[attr-defined]

    return rest()


async def _next(stream: AsyncIterator[Piece]) -> Piece:
    return await anext(stream)


async def _events(stream: AsyncIterator[Piece]) -> AsyncIterator[bytes]:
    try:
        async for piece in stream:
            if piece.text:
                yield event({"text": piece.text})
            if piece.stopped:
                yield event({"done": True, "stopped": piece.stopped})
    except Exception as error:
        yield event({"error": refusal(error).problem})
    finally:
        await stream.aclose()  # type: ignore[attr-defined]
