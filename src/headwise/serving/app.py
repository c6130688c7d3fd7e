"""The application: routes, what they share, and the guard around them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException

from headwise import __version__
from headwise.errors import HeadwiseError
from headwise.serving import generation_routes, openai_routes, server_routes, translation_routes
from headwise.serving.app_state import State
from headwise.serving.errors import Refusal, refusal, response
from headwise.serving.guard import Doors, Guard
from headwise.serving.limits import Limits
from headwise.serving.metrics import Metrics
from headwise.serving.model_index import Shelf
from headwise.serving.openai_routes import CompletionQuestion
from headwise.serving.schemas import (
    DetectForm,
    DetectQuestion,
    GenerateQuestion,
    LookQuestion,
    TranslateForm,
    TranslateQuestion,
)
from headwise.serving.served_models import serve_models
from headwise.workflows.serve import Served

QUESTIONS: tuple[type[BaseModel], ...] = (
    TranslateQuestion, TranslateForm, DetectQuestion, DetectForm, LookQuestion, GenerateQuestion, CompletionQuestion,
)  # fmt: skip
log = logging.getLogger("headwise.server")


class Service:
    """An ASGI application that can also be told to come to an end."""

    def __init__(
        self,
        served: Sequence[Served],
        doors: Doors | None = None,
        limits: Limits | None = None,
        runs: Path | None = None,
    ) -> None:
        self.limits, self.metrics = limits or Limits(), Metrics()
        self.models = serve_models(served, self.limits, self.metrics)
        state = State(Shelf(self.models), doors or Doors(), self.limits, self.metrics, runs)
        app = _application(state)
        self.guard = app.state.guard = Guard(app, state.doors, self.limits, self.metrics)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.guard(scope, receive, send)

    def refuse_all(self) -> None:
        """Everyone who still waits for an answer is told that there will be none."""
        for model in self.models:
            for lane in model.lanes:
                lane.refuse()


def _application(state: State) -> FastAPI:
    app = FastAPI(
        title="Headwise",
        version=__version__,
        description="Translation and text by models of your own.",
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
        swagger_ui_oauth2_redirect_url=None,
        redirect_slashes=False,
    )
    app.state.headwise = state
    for routes in (translation_routes, generation_routes, openai_routes, server_routes):  # the busiest first
        app.include_router(routes.router)
    app.mount("/page", StaticFiles(directory=server_routes.PAGE, check_dir=False), name="page")
    for kind in (Refusal, HeadwiseError, HTTPException, TimeoutError, Exception):
        app.add_exception_handler(kind, _refuse)
    app.add_exception_handler(RequestValidationError, _misunderstood)
    app.openapi = lambda: _schema(app)  # type: ignore[method-assign]
    return app


async def _refuse(request: Request, error: Exception) -> JSONResponse:
    refused = refusal(error)
    if not isinstance(error, Refusal | HeadwiseError | HTTPException | TimeoutError):
        # The type and the place, not the message: it may quote a text.
        log.error("%s failed: %s at %s", request.scope["path"], type(error).__name__, _place(error))
    answer = response(refused, openai=request.scope["path"].startswith("/v1/"))
    if isinstance(error, HTTPException) and error.headers:
        answer.headers.update(error.headers)
    return answer


async def _misunderstood(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    return response(Refusal(400, f"{'.'.join(map(str, first['loc']))}: {first['msg']}"))


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "unknown" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"


def _schema(app: FastAPI) -> dict[str, Any]:
    """FastAPI's, with the bodies that handlers read themselves, and without the 422 that this server never sends."""
    if app.openapi_schema is None:
        schema = FastAPI.openapi(app)
        _, definitions = models_json_schema(
            [(question, "validation") for question in QUESTIONS], ref_template="#/components/schemas/{model}"
        )
        schema.setdefault("components", {}).setdefault("schemas", {}).update(definitions["$defs"])
        for path in schema["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)
        for name in ("HTTPValidationError", "ValidationError"):
            schema["components"]["schemas"].pop(name, None)
        app.openapi_schema = schema
    return app.openapi_schema
