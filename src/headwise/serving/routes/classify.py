"""The route of classifiers: labels with their probabilities, for texts or pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, cast

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field, StringConstraints, model_validator

from headwise.serving.app_state import AppState
from headwise.serving.errors import RequestError
from headwise.serving.limits import MAX_TEXT, Limits
from headwise.serving.model_index import queue_by_name
from headwise.serving.requests import ERROR_RESPONSES, read_body, unless_client_leaves
from headwise.serving.routes import MakeQueue
from headwise.serving.routes.encoder_model import ClassifierModel, open_encoder
from headwise.serving.schemas import Name, RequestBody, Text, Whole, check_characters
from headwise.serving.uploads import File, from_base64, is_upload, read_upload, upload_schema
from headwise.tasks.classify import TASK
from headwise.tasks.served_encoders import ServedClassifier

MAX_TEXTS = 100  # per request
MAX_PICTURES = 16  # per request
MAX_UPLOAD = 10 * 2**20  # bytes of a request, with all its pictures
MAX_TOP = 1_000

router = APIRouter(default_response_class=Response)
queue_of = {"/classify": queue_by_name(TASK.name)}
upload_limits = {"/classify": MAX_UPLOAD}

Picture = Annotated[str, StringConstraints(min_length=1, max_length=MAX_UPLOAD)]
Top = Annotated[Whole, Field(ge=1, le=MAX_TOP)]
READS = {"text": "reads texts: send text", "pair": "reads pairs of texts: send text and second",
         "image": "reads pictures: send image"}  # fmt: skip


def open_model(served: ServedClassifier, make_queue: MakeQueue, limits: Limits) -> ClassifierModel:
    """Gives pictures a queue in which they are decoded, and texts one in which attention is drawn."""
    return open_encoder(ClassifierModel, served, make_queue, "classify", "read" if served.reads == "image" else "look")


class ClassifyBody(RequestBody):
    text: Text | Annotated[list[Text], Field(min_length=1, max_length=MAX_TEXTS)] | None = Field(
        None, description=f"Text, or texts; together at most {MAX_TEXT:,} characters."
    )
    second: Text | Annotated[list[Text], Field(min_length=1, max_length=MAX_TEXTS)] | None = Field(
        None, description="For a model that reads pairs: the second text of each."
    )
    image: Picture | Annotated[list[Picture], Field(min_length=1, max_length=MAX_PICTURES)] | None = Field(
        None, description="Picture, or pictures, in base64: PNG, JPEG, WebP or BMP."
    )
    model: Name | None = None
    top: Top = Field(5, description="Labels whose probabilities are returned, likeliest first.")

    @model_validator(mode="after")
    def _consistent(self) -> ClassifyBody:
        if (self.text is None) == (self.image is None):
            raise ValueError("send either text or image")
        if self.second is not None and len(_listed(self.second)) != len(_listed(self.text)):
            raise ValueError("text and second must have the same number of texts")
        check_characters([*_listed(self.text), *_listed(self.second)])
        return self


class ClassifyFields(RequestBody):
    """The fields of a form besides its pictures."""

    model: Name | None = None
    top: int = Field(5, ge=1, le=MAX_TOP)


class ClassifyForm(ClassifyFields):
    image: Annotated[list[File], Field(min_length=1, max_length=MAX_PICTURES)]


bodies = (ClassifyBody, ClassifyForm)


class LabelProbability(BaseModel):
    label: str
    probability: float


class Labelled(LabelProbability):
    top: list[LabelProbability]


class ClassifyAnswer(BaseModel):
    model: str
    answers: list[Labelled] = Field(description="One per text or picture, in order.")


@dataclass(frozen=True)
class _Asked:
    model: str | None
    top: int
    texts: list[str]
    seconds: list[str]
    pictures: list[bytes]

    @property
    def kind(self) -> str:
        return "image" if self.pictures else "pair" if self.seconds else "text"


@router.post(
    "/classify",
    responses={200: {"model": ClassifyAnswer}, **ERROR_RESPONSES},
    openapi_extra=upload_schema(ClassifyBody, ClassifyForm),
)
async def classify(request: Request) -> JSONResponse:
    """Labels texts (JSON) or pictures (a form with files, or base64 in JSON)."""
    state = AppState.of(request)
    state.check_room(TASK.name)
    asked = await _read(request)
    model = cast(ClassifierModel, state.index.choose(TASK.name, asked.model))
    if asked.kind != model.served.reads:
        raise RequestError(400, f"this model {READS[model.served.reads]}")
    items: list[Any] = list(zip(asked.texts, asked.seconds, strict=True)) if asked.seconds else asked.texts
    with state.count_rejections(model.facts.name):
        characters = sum(map(len, [*asked.texts, *asked.seconds]))
        work = model.classify_files(asked.pictures) if asked.pictures else model.classify_texts(items, characters)
        found = await unless_client_leaves(request, work, state.limits.timeout)
    answers = [
        {
            "label": one.label,
            "probability": round(one.probability, 6),
            "top": [
                {"label": label, "probability": round(probability, 6)}
                for label, probability in list(one.probabilities.items())[: asked.top]
            ],
        }
        for one in found
    ]
    return JSONResponse({"model": model.facts.name, "answers": answers})


async def _read(request: Request) -> _Asked:
    if is_upload(request):
        form = await read_upload(request, ClassifyFields, "image", MAX_PICTURES)
        return _Asked(form.fields.model, form.fields.top, [], [], form.files)
    body = await read_body(request, ClassifyBody)
    pictures = [from_base64(one) for one in _listed(body.image)]
    return _Asked(body.model, body.top, _listed(body.text), _listed(body.second), pictures)


def _listed(given: str | list[str] | None) -> list[str]:
    return [] if given is None else [given] if isinstance(given, str) else given
