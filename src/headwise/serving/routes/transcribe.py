"""The route of speech models: sound files in, text with times out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal, cast

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, Field, StringConstraints, model_validator

from headwise.config.cores import decoding_cores
from headwise.decoding.transcript import Segment, Transcript
from headwise.serving.app_state import AppState
from headwise.serving.errors import RequestError, as_request_error
from headwise.serving.limits import Limits
from headwise.serving.requests import ERROR_RESPONSES, event, unless_client_leaves
from headwise.serving.routes import MakeQueue
from headwise.serving.routes.transcription_model import (
    MEDIA,
    Form,
    SpeechSettings,
    TranscriptionModel,
    stream_transcript,
    transcript_response,
)
from headwise.serving.schemas import Name, RequestBody
from headwise.serving.streams import STREAM, begun
from headwise.serving.uploads import File, is_upload, read_upload, upload_schema
from headwise.tasks.served_transcriber import ServedTranscriber
from headwise.tasks.transcribe import TASK

MAX_UPLOAD = 25 * 2**20  # bytes of a request
MAX_BEAM = 10

router = APIRouter(default_response_class=Response)
upload_limits = {"/transcribe": MAX_UPLOAD}
Language = Annotated[str, StringConstraints(min_length=1, max_length=20)]
AS_TEXT: dict[str, Any] = {media: {"schema": {"type": "string"}} for media in MEDIA.values()}


def open_model(served: ServedTranscriber, make_queue: MakeQueue, limits: Limits) -> TranscriptionModel:
    """Gives torch one thread, another engine one per core, and files one thread in which they are read."""
    workers = 1 if served.facts.engine == "torch" else decoding_cores()
    model = TranscriptionModel(served, make_queue("transcribe", workers), make_queue("read", 1))
    model.queue.loads = True  # how long a window takes is not known yet, and may be seconds
    return model


class TranscribeFields(RequestBody):
    """The fields of a form besides its sound."""

    model: Name | None = None
    language: Language | None = Field(None, description="Of what is said; detected where the model knows several.")
    task: Literal["transcribe", "translate"] = Field("transcribe", description="translate: to English.")
    beam: int | None = Field(None, ge=1, le=MAX_BEAM)
    timestamps: bool | None = Field(None, description="By default, if the model has them.")
    format: Form = "json"
    stream: bool = Field(False, description="Server-sent events: each segment as it is found, then the rest.")

    @model_validator(mode="after")
    def _consistent(self) -> TranscribeFields:
        if self.stream and self.format != "json":
            raise ValueError("a stream is JSON; leave format out")
        return self


class TranscribeForm(TranscribeFields):
    file: File


bodies = (TranscribeForm,)


class TranscriptSegment(BaseModel):
    start: float
    end: float
    text: str
    confidence: float
    no_speech: float | None
    temperature: float


class TranscribeAnswer(BaseModel):
    model: str
    text: str
    language: str | None
    seconds: float
    silence: float
    segments: list[TranscriptSegment]


@router.post(
    "/transcribe",
    responses={
        200: {
            "model": TranscribeAnswer,
            "content": {**AS_TEXT, STREAM: {"schema": {}}},
            "description": "The transcript; with stream, events: {segment} …, then {done, text, …}, or {error}.",
        },
        **ERROR_RESPONSES,
    },
    openapi_extra=upload_schema(None, TranscribeForm),
)
async def transcribe(request: Request) -> Response:
    """Writes down what is said in a sound file (WAV, FLAC, OGG, MP3, …)."""
    state = AppState.of(request)
    state.check_room(TASK.name)
    if not is_upload(request):
        raise RequestError(415, "the body must be multipart/form-data with the sound in the field file")
    form = await read_upload(request, TranscribeFields, "file")
    asked = form.fields
    model = cast(TranscriptionModel, state.index.choose(TASK.name, asked.model))
    settings = SpeechSettings(asked.language, asked.task, asked.beam, asked.timestamps)
    if asked.stream:
        parts = await begun(request, state, model.facts.name, stream_transcript(model, form.files[0], settings))
        return StreamingResponse(_events(state, model.facts.name, parts), media_type=STREAM)
    with state.count_rejections(model.facts.name):
        work = model.transcribe(form.files[0], settings)
        transcript = await unless_client_leaves(request, work, state.limits.timeout)
    state.metrics.sound.labels(model.facts.name).inc(transcript.seconds)
    return transcript_response(transcript, asked.format, _content(model.facts.name, transcript))


async def _events(state: AppState, model: str, parts: AsyncIterator[Segment | Transcript]) -> AsyncIterator[bytes]:
    try:
        async for part in parts:
            if isinstance(part, Segment):
                yield event({"segment": part.as_dict()})
            else:
                state.metrics.sound.labels(model).inc(part.seconds)
                yield event({"done": True, **_content(model, part)})
    except Exception as error:
        yield event({"error": as_request_error(error).message})
    finally:
        await parts.aclose()  # type: ignore[attr-defined]


def _content(model: str, transcript: Transcript) -> dict[str, Any]:
    found = transcript.as_dict()
    found.pop("file")
    return {"model": model, **found}
