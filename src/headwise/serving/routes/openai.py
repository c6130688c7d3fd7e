"""What OpenAI's clients ask of a language model: /v1/models and /v1/completions."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, model_validator

from headwise.serving import limits
from headwise.serving.app_state import State
from headwise.serving.errors import Refusal, refusal
from headwise.serving.generation_routes import STREAM, options_of, started
from headwise.serving.requests import PROBLEMS, body_schema, event, read, unless_gone
from headwise.serving.schemas import GenerateQuestion, Name, Seed, Stop, Text, Whole
from headwise.serving.served_models import GenerationModel
from headwise.serving.streaming import Piece, pieces

router = APIRouter(prefix="/v1", default_response_class=Response)
NOT_SUPPORTED = ("best_of", "frequency_penalty", "logit_bias", "logprobs", "presence_penalty", "suffix")


class OpenAIError(BaseModel):
    message: str
    type: str
    param: str | None
    code: str | None


class OpenAIProblem(BaseModel):
    error: OpenAIError | str


V1_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {**problem, "model": OpenAIProblem} for status, problem in PROBLEMS.items()
}


class StreamOptions(BaseModel):
    model_config = ConfigDict(extra="ignore")
    include_usage: bool = False


class CompletionQuestion(BaseModel):
    """Fields that would change the answer and are not supported must have the value that changes nothing."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    model: Name
    prompt: Text | Annotated[list[Text], Field(min_length=1, max_length=limits.MAX_PROMPTS)] = ""
    max_tokens: Annotated[Whole, Field(ge=1, le=limits.MAX_TOKENS)] | None = 16
    temperature: float | None = Field(1.0, ge=0, le=2, allow_inf_nan=False)
    top_p: float | None = Field(1.0, gt=0, le=1, allow_inf_nan=False)
    n: Annotated[Whole, Field(ge=1, le=limits.MAX_SAMPLES)] | None = 1
    stop: Stop | Annotated[list[Stop], Field(max_length=limits.MAX_STOPS)] | None = None
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
    def _bounded(self) -> CompletionQuestion:
        if len(self.prompts) * (self.n or 1) * self.generation.max_tokens > limits.MAX_WRITTEN:
            raise ValueError(f"prompts × n × max_tokens may be {limits.MAX_WRITTEN:,}")
        if sum(map(len, self.prompts)) > limits.MAX_TEXT:
            raise ValueError(f"all prompts together may have {limits.MAX_TEXT:,} characters")
        return self

    @property
    def prompts(self) -> list[str]:
        return [self.prompt] if isinstance(self.prompt, str) else self.prompt

    @property
    def generation(self) -> GenerateQuestion:
        """The same as a question of our own; null is a default."""
        stop = [self.stop] if isinstance(self.stop, str) else self.stop or []
        given = {"temperature": self.temperature, "top_p": self.top_p, "samples": self.n, "seed": self.seed}
        return GenerateQuestion(
            max_tokens=self.max_tokens or 16,
            stop=stop,
            **{name: value for name, value in given.items() if value is not None},
        )


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


@router.get("/models", responses={200: {"model": ModelList}, 401: V1_PROBLEMS[401], 403: V1_PROBLEMS[403]})
async def models(request: Request) -> JSONResponse:
    """The language models."""
    data = [ListedModel(id=name, created=0, owned_by="headwise") for name in State.of(request).shelf.writers]
    return JSONResponse(ModelList(data=data).model_dump())


@router.get("/models/{model}", responses={200: {"model": ListedModel}, **V1_PROBLEMS})
async def model_by_name(request: Request, model: str) -> JSONResponse:
    """One of them."""
    if model not in State.of(request).shelf.writers:
        raise Refusal(404, "there is no such language model")
    return JSONResponse(ListedModel(id=model, created=0, owned_by="headwise").model_dump())


@router.post(
    "/completions",
    responses={
        200: {"model": Completion, "content": {STREAM: {"schema": {}}}},
        **V1_PROBLEMS,
    },
    openapi_extra=body_schema(CompletionQuestion),
)
async def completions(request: Request) -> Response:
    """Let a language model write on, in OpenAI's terms."""
    state = State.of(request)
    question = await read(request, CompletionQuestion)
    if question.model not in state.shelf.writers:
        raise Refusal(404, f"there is no such language model; there are {', '.join(state.shelf.writers) or 'none'}")
    model = state.shelf.generator(question.model)
    writing = _Completions(model, question)
    stream = await started(request, state, model, writing.pieces())
    if question.stream:
        return StreamingResponse(writing.events(stream), media_type=STREAM)
    return JSONResponse(await unless_gone(request, writing.whole(stream), state.limits.timeout))


class _Completions:
    """Prompts one after the other, `n` samples of each at once; choices are numbered through."""

    def __init__(self, model: GenerationModel, question: CompletionQuestion) -> None:
        self.model, self.question = model, question
        self.head = {
            "id": f"cmpl-{secrets.token_hex(12)}",
            "object": "text_completion",
            "created": int(time.time()),
            "model": model.facts.name,
        }
        self.tokens = 0

    async def pieces(self) -> AsyncIterator[Piece]:
        options = options_of(self.question.generation)
        for number, prompt in enumerate(self.question.prompts):
            first = number * options["samples"]
            if self.question.echo and prompt:
                for sample in range(options["samples"]):
                    yield Piece(first + sample, prompt)
            stream = pieces(self.model, prompt, options)
            try:
                async for piece in stream:
                    self.tokens += piece.tokens if piece.stopped else 0
                    yield Piece(first + piece.sample, piece.text, piece.stopped, piece.tokens)
            finally:
                await stream.aclose()  # type: ignore[attr-defined]

    async def whole(self, stream: AsyncIterator[Piece]) -> dict[str, Any]:
        choices: dict[int, dict[str, Any]] = {}
        async for piece in stream:
            choice = choices.setdefault(piece.sample, _choice(piece.sample))
            choice["text"] += piece.text
            choice["finish_reason"] = piece.stopped
        return {**self.head, "choices": [choices[number] for number in sorted(choices)], "usage": self.usage()}

    async def events(self, stream: AsyncIterator[Piece]) -> AsyncIterator[bytes]:
        with_usage = self.question.stream_options is not None and self.question.stream_options.include_usage
        try:
            async for piece in stream:
                choice = {**_choice(piece.sample), "text": piece.text, "finish_reason": piece.stopped}
                yield event({**self.head, "choices": [choice]})
            if with_usage:
                yield event({**self.head, "choices": [], "usage": self.usage()})
            yield b"data: [DONE]\n\n"
        except Exception as error:
            yield event({"error": {"message": refusal(error).problem, "type": "server_error", "code": None}})
        finally:
            await stream.aclose()  # type: ignore[attr-defined]

    def usage(self) -> dict[str, int]:
        read = sum(self.model.served.count(prompt) for prompt in self.question.prompts)
        return {"prompt_tokens": read, "completion_tokens": self.tokens, "total_tokens": read + self.tokens}


def _choice(index: int) -> dict[str, Any]:
    return {"text": "", "index": index, "finish_reason": None, "logprobs": None}
