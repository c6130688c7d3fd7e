"""The route /v1/audio/transcriptions for OpenAI's clients."""

from __future__ import annotations

import math
from typing import Any, Literal, cast

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field, model_validator

from headwise.decoding.transcriber import compression
from headwise.decoding.transcript import Transcript
from headwise.serving.app_state import AppState
from headwise.serving.errors import RequestError
from headwise.serving.model_index import listed
from headwise.serving.requests import unless_client_leaves
from headwise.serving.routes.openai import V1_ERRORS
from headwise.serving.routes.transcribe import AS_TEXT, MAX_UPLOAD, Language
from headwise.serving.routes.transcription_model import SpeechSettings, TranscriptionModel, transcript_response
from headwise.serving.schemas import Name
from headwise.serving.uploads import File, is_upload, read_upload, upload_schema
from headwise.tasks.transcribe import TASK
from headwise.text.languages import name_of

router = APIRouter(prefix="/v1", default_response_class=Response)
upload_limits = {"/v1/audio/transcriptions": MAX_UPLOAD, "/v1/audio/translations": MAX_UPLOAD}
# What would change the answer is refused; what changes nothing may be sent.
NOT_SUPPORTED = ("prompt", "chunking_strategy", "include", "include[]", "known_speaker_names", "known_speaker_names[]")
GRANULARITIES = ("timestamp_granularities", "timestamp_granularities[]")


class TranscriptionFields(BaseModel):
    """OpenAI's fields besides the sound."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    model: Name
    language: Language | None = None
    response_format: Literal["json", "text", "srt", "vtt", "verbose_json"] = "json"
    temperature: float = Field(0.0, ge=0, le=1, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _supported(cls, values: Any) -> Any:
        for name in NOT_SUPPORTED:
            if any(_listed(values.get(name))):
                raise ValueError(f"{name} is not supported; leave it out")
        if values.get("stream", "").lower() not in ("", "false", "0"):
            raise ValueError("stream is not supported; leave it out")
        if {one for name in GRANULARITIES for one in _listed(values.get(name))} - {"", "segment"}:
            raise ValueError("timestamp_granularities may only be segment; there are no times of words")
        return values


class TranscriptionForm(TranscriptionFields):
    file: File


class TranscriptionSegment(BaseModel):
    id: int
    seek: int
    start: float
    end: float
    text: str
    tokens: list[int]
    temperature: float
    avg_logprob: float
    compression_ratio: float
    no_speech_prob: float


class TranscriptionAnswer(BaseModel):
    """The fields after `text` are those of verbose_json."""

    text: str
    task: Literal["transcribe"] | None = None
    language: str | None = None
    duration: float | None = None
    segments: list[TranscriptionSegment] | None = None


bodies = (TranscriptionForm,)


@router.post(
    "/audio/transcriptions",
    responses={200: {"model": TranscriptionAnswer, "content": AS_TEXT}, **V1_ERRORS},
    openapi_extra=upload_schema(None, TranscriptionForm),
)
async def transcriptions(request: Request) -> Response:
    """Writes down what is said in a sound file, with OpenAI's fields."""
    state = AppState.of(request)
    state.check_room(TASK.name)
    if not is_upload(request):
        raise RequestError(415, "the body must be multipart/form-data with the sound in the field file")
    form = await read_upload(request, TranscriptionFields, "file")
    asked = form.fields
    found = {model.facts.name: cast(TranscriptionModel, model) for model in state.index.of_task(TASK.name)}
    if asked.model not in found:
        raise RequestError(404, f"there is no such speech model; there are {listed(found)}")
    temperatures = (asked.temperature,) if asked.temperature else None
    with state.count_rejections(asked.model):
        work = found[asked.model].transcribe(form.files[0], SpeechSettings(asked.language, temperatures=temperatures))
        transcript = await unless_client_leaves(request, work, state.limits.timeout)
    state.metrics.sound.labels(asked.model).inc(transcript.seconds)
    if asked.response_format == "verbose_json":
        return transcript_response(transcript, "json", _verbose(transcript))
    return transcript_response(transcript, asked.response_format, {"text": transcript.text})


@router.post("/audio/translations", include_in_schema=False)
async def translations() -> JSONResponse:
    """Refuses to translate speech, before the sound is read."""
    raise RequestError(400, "sound is not translated here: use /transcribe with task=translate, if the model can")


def _listed(given: str | list[str] | None) -> list[str]:
    return given if isinstance(given, list) else [given or ""]


def _verbose(transcript: Transcript) -> dict[str, Any]:
    segments = [
        {
            "id": number,
            "seek": 0,
            "start": round(one.start, 3),
            "end": round(one.end, 3),
            "text": one.text,
            "tokens": [],
            "temperature": one.temperature,
            "avg_logprob": round(math.log(max(one.confidence, 1e-30)), 4),
            "compression_ratio": round(compression(one.text), 4),
            "no_speech_prob": one.no_speech or 0.0,
        }
        for number, one in enumerate(transcript.segments)
    ]
    language = name_of(transcript.language).lower() if transcript.language else ""
    seconds = round(transcript.seconds, 3)
    head = {"task": "transcribe", "language": language, "duration": seconds}
    return {**head, "text": transcript.text, "segments": segments}
