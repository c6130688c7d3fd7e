"""The application: the routes, the state they share, and the guard around them."""

from __future__ import annotations

import asyncio
import logging
import time
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
from headwise.serving.access import AccessRules
from headwise.serving.app_state import AppState
from headwise.serving.batch_queue import BatchQueue
from headwise.serving.errors import RequestError, as_request_error, error_response, is_openai
from headwise.serving.guard import Guard
from headwise.serving.limits import Limits
from headwise.serving.logs import place_of
from headwise.serving.model_index import ModelIndex
from headwise.serving.overload import Overload
from headwise.serving.prometheus import Metrics
from headwise.serving.routes import all_routes, open_paths, path_templates, upload_limits
from headwise.serving.served_models import ServedModel, serve_models
from headwise.tasks.interface import Served

PAGE = Path(__file__).parent / "page"
log = logging.getLogger("headwise.server")


class Service:
    """Is the ASGI application, and can be told to shut down."""

    def __init__(
        self,
        served: Sequence[Served],
        access: AccessRules | None = None,
        limits: Limits | None = None,
        runs: Path | None = None,
    ) -> None:
        self.limits, self.metrics = limits or Limits(), Metrics()
        self.models = serve_models(served, self.limits, self.metrics)
        self.replaced: list[ServedModel] = []
        self.index = ModelIndex(self.models)
        self.overload = Overload(self.index, self.metrics)
        state = AppState(self.index, access or AccessRules(), self.limits, self.metrics, runs)
        app = _application(state)
        self.guard = app.state.guard = Guard(
            app, state.access, self.limits, self.metrics, open_paths(), path_templates(), upload_limits()
        )

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.guard(scope, receive, send)

    async def replace_models(self, served: Sequence[Served]) -> None:
        """Sends new requests to other models; the ones from before finish the requests that they have accepted."""
        before, self.models = self.models, serve_models(served, self.limits, self.metrics)
        self.index.replace(self.models)
        self.replaced += before
        await asyncio.sleep(self.limits.timeout)  # until then a request may be under way to a queue from before
        for queue in _queues(before):
            queue.close()
        self.replaced = [model for model in self.replaced if model not in before]

    def close_queues(self) -> None:
        """Ends all requests that still wait with a 503, and stops the work on them."""
        for queue in _queues([*self.models, *self.replaced]):
            queue.close()

    def join_queues(self, seconds: float) -> bool:
        """Waits until the threads of closed queues have ended; tells whether all have."""
        deadline = time.monotonic() + seconds
        return all(queue.join(deadline) for queue in _queues([*self.models, *self.replaced]))


def _queues(models: Sequence[ServedModel]) -> list[BatchQueue]:
    return [queue for model in models for queue in model.queues]


def _application(state: AppState) -> FastAPI:
    app = FastAPI(
        title="Headwise",
        version=__version__,
        description="Translation, text, labels, vectors and transcripts by models of your own.",
        docs_url=None,  # FastAPI's pages load scripts from other sites
        redoc_url=None,
        swagger_ui_oauth2_redirect_url=None,
        redirect_slashes=False,
    )
    app.state.headwise = state
    bodies: list[type[BaseModel]] = []
    for routes in all_routes():
        app.include_router(routes.router)
        bodies += routes.bodies
    app.mount("/page", StaticFiles(directory=PAGE, check_dir=False), name="page")
    for kind in (RequestError, HeadwiseError, HTTPException, TimeoutError, Exception):
        app.add_exception_handler(kind, _on_error)
    app.add_exception_handler(RequestValidationError, _on_wrong_parameter)
    app.openapi = lambda: _schema(app, bodies)  # type: ignore[method-assign]
    return app


async def _on_error(request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, RequestError | HeadwiseError | HTTPException | TimeoutError):
        # The type and the place, not the message: it may quote a text.
        log.error("%s failed: %s at %s", request.scope["path"], type(error).__name__, place_of(error))
    answer = error_response(as_request_error(error), openai=is_openai(request.scope["path"]))
    if isinstance(error, HTTPException) and error.headers:
        answer.headers.update(error.headers)
    return answer


async def _on_wrong_parameter(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    return error_response(RequestError(400, f"{'.'.join(map(str, first['loc']))}: {first['msg']}"))


def _schema(app: FastAPI, bodies: Sequence[type[BaseModel]]) -> dict[str, Any]:
    """Adds the bodies that handlers read themselves to FastAPI's schema; removes the 422 that is never sent."""
    if app.openapi_schema is None:
        schema = FastAPI.openapi(app)
        _, definitions = models_json_schema(
            [(body, "validation") for body in bodies], ref_template="#/components/schemas/{model}"
        )
        schema.setdefault("components", {}).setdefault("schemas", {}).update(definitions["$defs"])
        for path in schema["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)
        for name in ("HTTPValidationError", "ValidationError"):
            schema["components"]["schemas"].pop(name, None)
        app.openapi_schema = schema
    return app.openapi_schema
