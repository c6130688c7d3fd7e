"""Routes for translation. LibreTranslate's clients work unchanged."""

from __future__ import annotations

import asyncio
import math
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field, StringConstraints, model_validator

from headwise import __version__
from headwise.config.cores import decoding_cores
from headwise.decoding.translator import Translation
from headwise.serving.app_state import AppState
from headwise.serving.batch_queue import BatchQueue
from headwise.serving.language_detection import Detection
from headwise.serving.limits import MAX_TEXT, Limits
from headwise.serving.model_index import ModelIndex
from headwise.serving.requests import ERROR_RESPONSES, body_schema, check_key, read_body, unless_client_leaves
from headwise.serving.routes import MakeQueue
from headwise.serving.routes.translation_cost import TranslationSettings
from headwise.serving.routes.translation_model import TranslatedText, TranslationModel
from headwise.serving.routes.translators import Translators
from headwise.serving.schemas import Name, RequestBody, Text, Whole
from headwise.tasks.translate import TASK, ServedTranslator
from headwise.text.languages import name_of

MAX_TEXTS = 100  # per request
MAX_BEAM = 10
MAX_ALTERNATIVES = 9
MAX_TERMS = 100  # per glossary
MAX_TERM = 100  # characters

Language = Annotated[str, StringConstraints(min_length=1, max_length=20)]
Term = Annotated[str, StringConstraints(min_length=1, max_length=MAX_TERM)]

router = APIRouter(default_response_class=Response)
# LibreTranslate's clients may send the key in the body, where the handlers look for it. The other two tell a client
# that it needs a key.
open_paths = ("/translate", "/detect", "/languages", "/frontend/settings")


def open_model(served: ServedTranslator, make_queue: MakeQueue, limits: Limits) -> TranslationModel:
    """Gives the fast engine one thread per core, and torch a single one."""
    if served.only_torch:
        queue = make_queue("translate", 1)
        return TranslationModel(served, queue, queue)
    return TranslationModel(served, make_queue("translate", decoding_cores()), make_queue("exact", 1))


def _queue_of(index: ModelIndex, fields: dict[str, Any]) -> BatchQueue | None:
    name, source = fields.get("model"), fields.get("source", "auto")
    found = [
        model.side_queue if fields.get("glossary") or fields.get("protect") else model.queue
        for model in index.of_task(TASK.name)
        if model.facts.languages[1] == fields.get("target")
        and source in ("auto", model.facts.languages[0])
        and name in (None, model.facts.name)
    ]
    # Where the language is to be detected, it is one of these; it does not matter which if all are full.
    return next((queue for queue in found if not queue.full), found[0] if found else None)


queue_of = {"/translate": _queue_of}


# ---- bodies


class TranslateBody(RequestBody):
    q: Text | Annotated[list[Text], Field(max_length=MAX_TEXTS)] = Field(
        description=f"Text, or texts; together at most {MAX_TEXT:,} characters."
    )
    source: Language = Field(
        "auto", description="Language code, or auto to detect it; a text whose language is uncertain is then refused."
    )
    target: Language
    format: Literal["text", "html"] = Field(
        "text", description="With html, what stands between two tags is translated, and the tags stay as they are."
    )
    alternatives: Whole = Field(0, ge=0, le=MAX_ALTERNATIVES, description="Further translations of each text.")
    api_key: str | None = Field(None, max_length=1000)
    secret: str | None = Field(None, max_length=1000, description="Sent by some clients; not used.")
    model: Name | None = Field(None, description="Model by name, where several translate this pair.")
    beam: Annotated[Whole, Field(ge=1, le=MAX_BEAM)] | None = Field(
        None, description="Beam size; the model's own by default."
    )
    glossary: Annotated[dict[Term, Term], Field(max_length=MAX_TERMS)] | None = Field(
        None, description="Source terms and the target terms that must be used for them."
    )
    protect: bool = Field(False, description="Keep placeholders, tags, addresses and numbers as they are.")
    details: bool = Field(False, description="Return score, confidence and tokens of each translation.")

    @model_validator(mode="after")
    def _bounded(self) -> TranslateBody:
        if not isinstance(self.q, str) and sum(map(len, self.q)) > MAX_TEXT:
            raise ValueError(f"all texts together may have {MAX_TEXT:,} characters")
        if self.beam is not None and self.beam <= self.alternatives:
            raise ValueError(f"{self.alternatives} alternatives need a beam of at least {self.alternatives + 1}")
        return self

    @property
    def texts(self) -> list[str]:
        return [self.q] if isinstance(self.q, str) else self.q

    @property
    def settings(self) -> TranslationSettings:
        glossary = tuple(sorted((self.glossary or {}).items()))
        return TranslationSettings(self.beam, self.alternatives, glossary, self.protect, self.details)


class TranslateForm(RequestBody):
    """The fields that an HTML form, or a client that sends one, may have."""

    q: Text
    source: Language = "auto"
    target: Language
    format: Literal["text", "html"] = "text"
    alternatives: int = Field(0, ge=0, le=MAX_ALTERNATIVES)
    api_key: str = Field("", max_length=1000)
    secret: str = Field("", max_length=1000)
    model: Name | None = None
    beam: Annotated[int, Field(ge=1, le=MAX_BEAM)] | None = None
    protect: bool = False
    details: bool = False


class DetectBody(RequestBody):
    q: Text
    api_key: str | None = Field(None, max_length=1000)


class DetectForm(RequestBody):
    q: Text
    api_key: str = Field("", max_length=1000)


bodies = (TranslateBody, TranslateForm, DetectBody, DetectForm)


class TokenProbability(BaseModel):
    text: str
    probability: float


class TranslationDetails(BaseModel):
    score: float
    confidence: float
    stopped: Literal["eos", "length", "loop"]
    model: str
    sentences: int
    tokens: list[TokenProbability]


class Detected(BaseModel):
    confidence: float
    language: str


class TranslateAnswer(BaseModel):
    translatedText: str | list[str]  # noqa: N815 (LibreTranslate's name)
    alternatives: list[str] | list[list[str]] | None = None
    detectedLanguage: Detected | list[Detected] | None = None  # noqa: N815
    details: list[TranslationDetails] | None = None


class LanguageFacts(BaseModel):
    code: str
    name: str
    targets: list[str]


# ---- routes


@router.post(
    "/translate",
    responses={200: {"model": TranslateAnswer}, **ERROR_RESPONSES},
    openapi_extra=body_schema(TranslateBody, TranslateForm),
)
async def translate(request: Request) -> JSONResponse:
    """Translates one text or several, given as JSON or as a form."""
    state = AppState.of(request)
    body = await read_body(request, TranslateBody, TranslateForm)
    check_key(request, state.access, body.api_key)
    translators = Translators(state.index)
    source: str = body.source
    detected: list[Detection] = []
    if source == "auto":
        finding = asyncio.to_thread(translators.source_of, body.texts, body.target, body.model)
        source, detected = await unless_client_leaves(request, finding, state.limits.timeout)
    model = translators.find(source, body.target, body.model)
    with state.count_rejections(model.facts.name):
        work = (model.translate_html if body.format == "html" else model.translate)(body.texts, body.settings)
        answers = await unless_client_leaves(request, work, state.limits.timeout)
    state.metrics.tokens.labels(model.facts.name).inc(sum(len(answer.whole.ids) for answer in answers))
    return JSONResponse(_content(body, answers, detected, model.facts.name))


def _content(
    body: TranslateBody, answers: list[TranslatedText], detected: list[Detection], model: str
) -> dict[str, Any]:
    def one_or_all(values: list[Any]) -> Any:
        return values[0] if isinstance(body.q, str) else values

    content: dict[str, Any] = {"translatedText": one_or_all([answer.whole.text for answer in answers])}
    if body.alternatives:
        content["alternatives"] = one_or_all([[other.text for other in a.whole.alternatives] for a in answers])
    if body.source == "auto":
        content["detectedLanguage"] = one_or_all([one._asdict() for one in detected])
    if body.details:
        content["details"] = [_details(answer, model) for answer in answers]
    return content


def _details(answer: TranslatedText, model: str) -> dict[str, Any]:
    whole = answer.whole
    return {
        "score": round(whole.score, 4),
        "confidence": round(whole.confidence, 4),
        "stopped": whole.stopped,
        "model": model,
        "sentences": len(answer.sentences),
        "tokens": [token for sentence in answer.sentences for token in _tokens(sentence)],
    }


def _tokens(sentence: Translation) -> list[dict[str, Any]]:
    return [
        {"text": piece, "probability": round(math.exp(log_prob), 4)}
        for piece, log_prob in zip(sentence.tokens, sentence.log_probs, strict=False)  # one more: end of sentence
    ]


@router.get("/languages", responses={200: {"model": list[LanguageFacts]}, 403: ERROR_RESPONSES[403]})
async def languages(request: Request) -> JSONResponse:
    """Lists the source languages, each with its target languages."""
    found = Translators(AppState.of(request).index)
    content = [{"code": code, "name": name_of(code), "targets": found.targets(code)} for code in found.sources()]
    return JSONResponse(content)


@router.post(
    "/detect",
    responses={200: {"model": list[Detected]}, **ERROR_RESPONSES},
    openapi_extra=body_schema(DetectBody, DetectForm),
)
async def detect(request: Request) -> JSONResponse:
    """Ranks the languages of the server for a text, likeliest first, with a confidence of 0 to 100."""
    state = AppState.of(request)
    body = await read_body(request, DetectBody, DetectForm)
    check_key(request, state.access, body.api_key)
    finding = asyncio.to_thread(Translators(state.index).detect, body.q)
    found = await unless_client_leaves(request, finding, state.limits.timeout)
    return JSONResponse([one._asdict() for one in found])


@router.get("/frontend/settings", responses={200: {"model": dict[str, Any]}, 403: ERROR_RESPONSES[403]})
async def frontend_settings(request: Request) -> JSONResponse:
    """Gives the settings that LibreTranslate's web pages ask for."""
    state = AppState.of(request)
    translators = Translators(state.index)
    sources = translators.sources()
    source = sources[0] if sources else ""
    target = translators.targets(source)[0] if sources else ""
    settings = {
        "apiKeys": bool(state.access.keys),
        "keyRequired": bool(state.access.keys),
        "charLimit": MAX_TEXT,
        "frontendTimeout": 500,
        "language": {
            "source": {"code": source, "name": name_of(source)},
            "target": {"code": target, "name": name_of(target)},
        },
        "suggestions": False,
        "filesTranslation": False,
        "supportedFilesFormat": [],
        "version": __version__,
    }
    return JSONResponse(settings)
