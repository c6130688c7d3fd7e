"""The route of models that fill gaps, written [MASK], in texts."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field, model_validator

from headwise.serving.app_state import AppState
from headwise.serving.errors import RequestError
from headwise.serving.limits import MAX_TEXT, Limits
from headwise.serving.model_index import queue_by_name
from headwise.serving.requests import ERROR_RESPONSES, body_schema, read_body, unless_client_leaves
from headwise.serving.routes import MakeQueue
from headwise.serving.routes.encoder_model import FillerModel, open_encoder
from headwise.serving.schemas import Name, RequestBody, Text, Whole, check_characters
from headwise.tasks.fill import TASK
from headwise.tasks.served_encoders import ServedFiller
from headwise.text.gaps import count_gaps

MAX_TEXTS = 20  # per request
MAX_GAPS = 50  # of all texts of a request: each takes a probability for every token of the vocabulary
MAX_TOP = 50
MOST_WRITTEN = 1_000_000  # characters of all candidates, each with its whole text

router = APIRouter(default_response_class=Response)
queue_of = {"/fill": queue_by_name(TASK.name)}


def open_model(served: ServedFiller, make_queue: MakeQueue, limits: Limits) -> FillerModel:
    return open_encoder(FillerModel, served, make_queue, "fill")


class FillBody(RequestBody):
    text: Text | Annotated[list[Text], Field(min_length=1, max_length=MAX_TEXTS)] = Field(
        description=f"Text with gaps, written [MASK], or texts; together at most {MAX_TEXT:,} characters."
    )
    model: Name | None = None
    top: Annotated[Whole, Field(ge=1, le=MAX_TOP)] = Field(5, description="Candidates for each gap, likeliest first.")

    @model_validator(mode="after")
    def _bounded(self) -> FillBody:
        check_characters(self.texts)
        return self

    @property
    def texts(self) -> list[str]:
        return [self.text] if isinstance(self.text, str) else self.text


bodies = (FillBody,)


class Candidate(BaseModel):
    text: str
    probability: float
    filled: str = Field(description="The whole text with this candidate in its gap, and the likeliest in the others.")


class FilledText(BaseModel):
    text: str = Field(description="The text with the likeliest candidate in each gap.")
    gaps: list[list[Candidate]]


class FillAnswer(BaseModel):
    model: str
    answers: list[FilledText] = Field(description="One per text, in order.")


@router.post("/fill", responses={200: {"model": FillAnswer}, **ERROR_RESPONSES}, openapi_extra=body_schema(FillBody))
async def fill(request: Request) -> JSONResponse:
    """Says what belongs into the gaps of texts."""
    state = AppState.of(request)
    body = await read_body(request, FillBody)
    model = cast(FillerModel, state.index.choose(TASK.name, body.model))
    _check_cost(body)
    with state.count_rejections(model.facts.name):
        found = await unless_client_leaves(request, model.fill(body.texts, body.top), state.limits.timeout)
    answers = [
        {
            "text": one.text,
            "gaps": [
                [{"text": c.text, "probability": round(c.probability, 6), "filled": c.filled} for c in candidates]
                for candidates in one.gaps
            ],
        }
        for one in found
    ]
    return JSONResponse({"model": model.facts.name, "answers": answers})


def _check_cost(body: FillBody) -> None:
    gaps = [count_gaps(text) for text in body.texts]
    if sum(gaps) > MAX_GAPS:
        raise RequestError(413, f"the texts have {sum(gaps)} gaps, but a request may have {MAX_GAPS}; send fewer")
    written = body.top * sum(len(text) * count for text, count in zip(body.texts, gaps, strict=True))
    if written > MOST_WRITTEN:
        raise RequestError(
            413, f"the candidates would have {written:,} characters, but at most {MOST_WRITTEN:,} are written; "
            "use a smaller top, or shorter texts"
        )  # fmt: skip
