"""Routes for OpenAI's clients: /v1/models, and /v1/completions of language models."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, model_validator

from headwise.serving.app_state import AppState
from headwise.serving.errors import RequestError, as_request_error
from headwise.serving.limits import MAX_TEXT
from headwise.serving.model_index import ModelIndex, listed, queue_by_name
from headwise.serving.requests import ERROR_RESPONSES, body_schema, event, read_body, unless_client_leaves
from headwise.serving.routes.generate import (
    MAX_GENERATED,
    MAX_SAMPLES,
    MAX_STOPS,
    MAX_TOKENS,
    GenerateBody,
    Stop,
    generators,
    started,
)
from headwise.serving.routes.generation_model import GenerationModel, TextChunk, stream_text
from headwise.serving.schemas import Name, Seed, Text, Whole
from headwise.serving.streams import STREAM
from headwise.tasks.generate import TASK

MAX_PROMPTS = 8  # per request
router = APIRouter(prefix="/v1", default_response_class=Response)
TASKS = (TASK.name, "embed", "transcribe")  # of which OpenAI has routes
NOT_SUPPORTED = ("best_of", "frequency_penalty", "logit_bias", "logprobs", "presence_penalty", "suffix")

queue_of = {"/v1/completions": queue_by_name(TASK.name)}


class OpenAIError(BaseModel):
    message: str
    type: str
    param: str | None
    code: str | None


class OpenAIErrorAnswer(BaseModel):
    error: OpenAIError | str


V1_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {**described, "model": OpenAIErrorAnswer} for status, described in ERROR_RESPONSES.items()
}


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="ignore")
    include_usage: bool = False


class CompletionBody(BaseModel):
    """Accepts OpenAI's fields; one that is not supported must have the value that changes nothing."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    model: Name
    prompt: Text | Annotated[list[Text], Field(min_length=1, max_length=MAX_PROMPTS)] = ""
    max_tokens: Annotated[Whole, Field(ge=1, le=MAX_TOKENS)] | None = 16
    temperature: float | None = Field(1.0, ge=0, le=2, allow_inf_nan=False)
    top_p: float | None = Field(1.0, gt=0, le=1, allow_inf_nan=False)
    n: Annotated[Whole, Field(ge=1, le=MAX_SAMPLES)] | None = 1
    stop: Stop | Annotated[list[Stop], Field(max_length=MAX_STOPS)] | None = None
    seed: Seed | None = None
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    echo: bool | None = False
    user: str | None = None
    best_of: Annotated[Whole, Field(ge=1, le=1)] | None = None
    frequency_penalty: Annotated[float, Field(ge=0, le=0)] | None = None
    presence_penalty: Annotated[float, Field(ge=0, le=0)] | None = None
    logit_bias: Annotated[dict[str, float], Field(max_length=0)] | None = None
    logprobs: None = None
    suffix: Literal[""] | None = None

    @model_validator(mode="before")
    @classmethod
    def _supported(cls, values: Any) -> Any:
        if isinstance(values, dict):
            for name in NOT_SUPPORTED:
                if values.get(name) not in (None, 0, 0.0, "", {}) and not (name == "best_of" and values[name] == 1):
                    raise ValueError(f"{name} is not supported; leave it out")
            if values.get("logprobs") == 0 and values["logprobs"] is not None:
                raise ValueError("logprobs is not supported; leave it out")
        return values

    @model_validator(mode="after")
    def _bounded(self) -> CompletionBody:
        if len(self.prompts) * (self.n or 1) * self.generation.max_tokens > MAX_GENERATED:
            raise ValueError(f"prompts × n × max_tokens may be at most {MAX_GENERATED:,}")
        if sum(map(len, self.prompts)) > MAX_TEXT:
            raise ValueError(f"all prompts together may have {MAX_TEXT:,} characters")
        return self

    @property
    def prompts(self) -> list[str]:
        return [self.prompt] if isinstance(self.prompt, str) else self.prompt

    @property
    def generation(self) -> GenerateBody:
        """The same in the fields of /generate; null stands for a default."""
        stop = [self.stop] if isinstance(self.stop, str) else self.stop or []
        given = {"temperature": self.temperature, "top_p": self.top_p, "samples": self.n, "seed": self.seed}
        return GenerateBody(
            max_tokens=self.max_tokens or 16,
            stop=stop,
            **{name: value for name, value in given.items() if value is not None},
        )


bodies = (CompletionBody,)


class Choice(BaseModel):
    text: str
    index: int
    finish_reason: Literal["stop", "length"] | None
    logprobs: None = None


class Usage(BaseModel):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Completion(BaseModel):
    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[Choice]
    usage: Usage | None = None


class ListedModel(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str


class ModelList(BaseModel):
    object: Literal["list"] = "list"
    data: list[ListedModel]


def _usable(index: ModelIndex) -> list[str]:
    return [name for name, model in index.models.items() if model.facts.kind in TASKS]


@router.get("/models", responses={200: {"model": ModelList}, 401: V1_ERRORS[401], 403: V1_ERRORS[403]})
async def models(request: Request) -> JSONResponse:
    """Lists the models that OpenAI's clients can use."""
    names = _usable(AppState.of(request).index)
    data = [ListedModel(id=name, created=0, owned_by="headwise") for name in names]
    return JSONResponse(ModelList(data=data).model_dump())


@router.get("/models/{model}", responses={200: {"model": ListedModel}, **V1_ERRORS})
async def model_by_name(request: Request, model: str) -> JSONResponse:
    """Tells whether there is a model of this name that OpenAI's clients can use."""
    if model not in _usable(AppState.of(request).index):
        raise RequestError(404, "there is no such model; ask /v1/models for the list")
    return JSONResponse(ListedModel(id=model, created=0, owned_by="headwise").model_dump())


@router.post(
    "/completions",
    responses={
        200: {"model": Completion, "content": {STREAM: {"schema": {}}}},
        **V1_ERRORS,
    },
    openapi_extra=body_schema(CompletionBody),
)
async def completions(request: Request) -> Response:
    """Lets a language model continue prompts, with OpenAI's fields."""
    state = AppState.of(request)
    body = await read_body(request, CompletionBody)
    found = generators(state.index)
    if body.model not in found:
        raise RequestError(404, f"there is no such language model; there are {listed(found)}")
    model = found[body.model]
    completion = _Completions(model, body)
    stream = await started(request, state, model, completion.chunks())
    if body.stream:
        return StreamingResponse(completion.events(stream), media_type=STREAM)
    return JSONResponse(await unless_client_leaves(request, completion.whole(stream), state.limits.timeout))


@router.post("/chat/completions", include_in_schema=False)
@router.post("/responses", include_in_schema=False)
async def chat() -> JSONResponse:
    """Refuses to chat: the models are not trained for it, and to imitate it would only look as if it worked."""
    raise RequestError(400, "these language models continue text and do not chat: use /v1/completions with a prompt")


class _Completions:
    """Completes prompts one after the other, `n` samples of each at once; choices are numbered over all prompts."""

    def __init__(self, model: GenerationModel, body: CompletionBody) -> None:
        self.model, self.body = model, body
        self.head = {
            "id": f"cmpl-{secrets.token_hex(12)}",
            "object": "text_completion",
            "created": int(time.time()),
            "model": model.facts.name,
        }
        self.tokens = 0

    async def chunks(self) -> AsyncIterator[TextChunk]:
        options = self.body.generation.options()
        for number, prompt in enumerate(self.body.prompts):
            first = number * options["samples"]
            if self.body.echo and prompt:
                for sample in range(options["samples"]):
                    yield TextChunk(first + sample, prompt)
            stream = stream_text(self.model, prompt, options)
            try:
                async for chunk in stream:
                    self.tokens += chunk.tokens if chunk.stopped else 0
                    yield TextChunk(first + chunk.sample, chunk.text, chunk.stopped, chunk.tokens)
            finally:
                await stream.aclose()  # type: ignore[attr-defined]

    async def whole(self, stream: AsyncIterator[TextChunk]) -> dict[str, Any]:
        choices: dict[int, dict[str, Any]] = {}
        async for chunk in stream:
            choice = choices.setdefault(chunk.sample, _choice(chunk.sample))
            choice["text"] += chunk.text
            choice["finish_reason"] = chunk.stopped
        return {**self.head, "choices": [choices[number] for number in sorted(choices)], "usage": self.usage()}

    async def events(self, stream: AsyncIterator[TextChunk]) -> AsyncIterator[bytes]:
        with_usage = self.body.stream_options is not None and self.body.stream_options.include_usage
        try:
            async for chunk in stream:
                choice = {**_choice(chunk.sample), "text": chunk.text, "finish_reason": chunk.stopped}
                yield event({**self.head, "choices": [choice]})
            if with_usage:
                yield event({**self.head, "choices": [], "usage": self.usage()})
            yield b"data: [DONE]\n\n"
        except Exception as error:
            yield event({"error": {"message": as_request_error(error).message, "type": "server_error", "code": None}})
        finally:
            await stream.aclose()  # type: ignore[attr-defined]

    def usage(self) -> dict[str, int]:
        read = sum(self.model.served.count(prompt) for prompt in self.body.prompts)
        return {"prompt_tokens": read, "completion_tokens": self.tokens, "total_tokens": read + self.tokens}


def _choice(index: int) -> dict[str, Any]:
    return {"text": "", "index": index, "finish_reason": None, "logprobs": None}
