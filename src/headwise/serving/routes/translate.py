"""Translating: this server's own questions, which LibreTranslate's clients ask too."""

from __future__ import annotations

import math
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from headwise import __version__
from headwise.decoding.translator import Translation
from headwise.look.page import allowed_hashes
from headwise.serving import limits
from headwise.serving.app_state import State
from headwise.serving.errors import Refusal
from headwise.serving.model_index import Shelf
from headwise.serving.requests import PROBLEMS, body_schema, check_key, read, unless_gone
from headwise.serving.schemas import (
    Detected,
    DetectForm,
    DetectQuestion,
    LanguageFacts,
    LookQuestion,
    TranslateAnswer,
    TranslateForm,
    TranslateQuestion,
)
from headwise.serving.served_models import Answer, Wanted
from headwise.text.languages import name_of

router = APIRouter(default_response_class=Response)


@router.post(
    "/translate",
    responses={200: {"model": TranslateAnswer}, **PROBLEMS},
    openapi_extra=body_schema(TranslateQuestion, TranslateForm),
)
async def translate(request: Request) -> JSONResponse:
    """Translate a text or several. LibreTranslate's clients work unchanged; JSON or a form."""
    state = State.of(request)
    question = await read(request, TranslateQuestion, TranslateForm)
    check_key(request, state.doors, question.api_key)
    texts = [question.q] if isinstance(question.q, str) else question.q
    source, detected = _source(state.shelf, question, texts)
    model = state.shelf.translator(source, question.target, question.model)
    glossary = tuple(sorted((question.glossary or {}).items()))
    wanted = Wanted(question.beam, question.alternatives, glossary, question.protect, question.details)
    with state.rejections(model.facts.name):
        answers = await unless_gone(request, model.translate(texts, wanted), state.limits.timeout)
    state.metrics.tokens.labels(model.facts.name).inc(sum(len(answer.whole.ids) for answer in answers))
    return JSONResponse(_told(question, answers, detected, model.facts.name))


def _source(shelf: Shelf, question: TranslateQuestion, texts: list[str]) -> tuple[str, list[Detected]]:
    """The source language; with 'auto', one for all texts, and what is known of each."""
    if question.source != "auto":
        return question.source, []
    if question.model is not None:
        candidates = list(shelf.by_name(question.model).facts.languages[:1])
    else:
        candidates = shelf.sources(question.target)
    if not candidates:
        raise Refusal(400, "no model translates to that language; ask /languages for those that there are")
    language = shelf.detect("\n".join(texts), candidates)[0].language
    shares = [{one.language: one for one in shelf.detect(text, candidates)} for text in texts]
    return language, [share[language] for share in shares]


def _told(question: TranslateQuestion, answers: list[Answer], detected: list[Detected], model: str) -> dict[str, Any]:
    one = isinstance(question.q, str)

    def listed(values: list[Any]) -> Any:
        return values[0] if one else values

    told: dict[str, Any] = {"translatedText": listed([answer.whole.text for answer in answers])}
    if question.alternatives:
        told["alternatives"] = listed([[other.text for other in a.whole.alternatives] for a in answers])
    if question.source == "auto":
        told["detectedLanguage"] = listed([one.model_dump() for one in detected])
    if question.details:
        told["details"] = [_details(answer, model) for answer in answers]
    return told


def _details(answer: Answer, model: str) -> dict[str, Any]:
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
        for piece, log_prob in zip(sentence.tokens, sentence.log_probs, strict=False)  # the end has one more
    ]


@router.post(
    "/look",
    responses={
        200: {"content": {"text/html": {"schema": {"type": "string"}}}, "description": "A page in one file."},
        **PROBLEMS,
    },
    openapi_extra=body_schema(LookQuestion),
)
async def look(request: Request) -> HTMLResponse:
    """The attention in a translation, or in what a language model reads, as a page to explore."""
    state = State.of(request)
    question = await read(request, LookQuestion)
    model = state.shelf.any(question.model)
    with state.rejections(model.facts.name):
        page = await unless_gone(request, model.look(question.text, question.target), state.limits.timeout)
    script, style = allowed_hashes()
    policy = (
        f"default-src 'none'; script-src {script}; style-src {style}; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'self'; sandbox allow-scripts"
    )
    return HTMLResponse(page, headers={"Content-Security-Policy": policy})


# ---- what LibreTranslate's clients ask besides


@router.get("/languages", responses={200: {"model": list[LanguageFacts]}, 403: PROBLEMS[403]})
async def languages(request: Request) -> JSONResponse:
    """Languages that can be translated from, and to which."""
    shelf = State.of(request).shelf
    listed = [{"code": code, "name": name_of(code), "targets": shelf.targets(code)} for code in shelf.sources()]
    return JSONResponse(listed)


@router.post(
    "/detect",
    responses={200: {"model": list[Detected]}, **PROBLEMS},
    openapi_extra=body_schema(DetectQuestion, DetectForm),
)
async def detect(request: Request) -> JSONResponse:
    """Which of this server's source languages a text is in, where their scripts differ; else a clear 400."""
    state = State.of(request)
    question = await read(request, DetectQuestion, DetectForm)
    check_key(request, state.doors, question.api_key)
    return JSONResponse([one.model_dump() for one in state.shelf.detect(question.q)])


@router.get("/frontend/settings", responses={200: {"model": dict[str, Any]}, 403: PROBLEMS[403]})
async def frontend_settings(request: Request) -> JSONResponse:
    """What a web page needs to know beforehand."""
    state = State.of(request)
    sources = state.shelf.sources()
    source = sources[0] if sources else ""
    target = state.shelf.targets(source)[0] if sources else ""
    settings = {
        "apiKeys": bool(state.doors.keys),
        "keyRequired": bool(state.doors.keys),
        "charLimit": limits.MAX_TEXT,
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
