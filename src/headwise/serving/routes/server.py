"""Routes about the server itself: its models, health and metrics; training runs; the page."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse, JSONResponse, Response
from pydantic import BaseModel

from headwise.look.page import allowed_hashes
from headwise.serving.app_state import AppState
from headwise.serving.errors import RequestError
from headwise.serving.model_cards import ModelCard, card_of
from headwise.serving.requests import ERROR_RESPONSES
from headwise.serving.runs import list_runs
from headwise.serving.schemas import ErrorAnswer, HealthAnswer, ModelsAnswer, RunAnswer, RunsAnswer

INDEX = Path(__file__).parents[1] / "page" / "index.html"
KEYED: dict[int | str, dict[str, Any]] = {status: ERROR_RESPONSES[status] for status in (401, 403)}
METRICS = "text/plain; version=0.0.4; charset=utf-8"

router = APIRouter(default_response_class=Response)
bodies: tuple[type[BaseModel], ...] = ()
# The page can be loaded without a key, so that it can ask for one; health checks have none.
open_paths = ("/", "/favicon.ico", "/health", "/health/live", "/health/ready")


@router.get("/", include_in_schema=False)
async def index() -> FileResponse:
    # A picture of attention is shown in a frame, which inherits this policy: its script and style are allowed by hash.
    script, style = allowed_hashes()
    policy = (
        f"default-src 'none'; script-src 'self' {script}; style-src 'self' {style}; connect-src 'self'; "
        "img-src 'self' data:; font-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    return FileResponse(INDEX, headers={"Content-Security-Policy": policy})


@router.get("/models", responses={200: {"model": ModelsAnswer}, **KEYED})
async def models(request: Request) -> JSONResponse:
    """Lists the models with their task, languages and size."""
    return JSONResponse({"models": [model.facts.as_dict() for model in AppState.of(request).index.models.values()]})


@router.get("/models/{name:path}", responses={200: {"model": ModelCard}, 404: {"model": ErrorAnswer}, **KEYED})
async def model_card(request: Request, name: str) -> JSONResponse:
    """Gives a model's card: task, family, size, data, licence, scores with their signatures."""
    return JSONResponse(card_of(AppState.of(request).index.by_name(name).facts))


@router.get("/spec", include_in_schema=False)
async def spec(request: Request) -> JSONResponse:
    """Gives the schema of /openapi.json where LibreTranslate's clients look for it."""
    return JSONResponse(request.app.openapi())


@router.get("/health", responses={200: {"model": HealthAnswer}, 403: ERROR_RESPONSES[403]})
@router.get("/health/live", responses={200: {"model": HealthAnswer}, 403: ERROR_RESPONSES[403]})
async def live() -> JSONResponse:
    """Tells that the server answers."""
    return JSONResponse({"status": "ok"})


@router.get(
    "/health/ready", responses={200: {"model": HealthAnswer}, 403: ERROR_RESPONSES[403], 503: {"model": HealthAnswer}}
)
async def ready(request: Request) -> JSONResponse:
    """Lets every model decode something. Answers 503 within 2 seconds if one is stuck or fails.

    The models are named only to those who have a key, where one is needed.
    """
    found = list(AppState.of(request).index.models.values())
    problems = await asyncio.gather(*(model.problem() for model in found))
    states = {model.facts.name: problem or "ready" for model, problem in zip(found, problems, strict=True)}
    fine = not any(problems) and not request.app.state.guard.draining
    content: dict[str, Any] = {"status": "ready" if fine else "not ready"}
    if request.scope.get("headwise.authorized"):
        content["models"] = states
    return JSONResponse(content, 200 if fine else 503)


@router.get("/metrics", responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **KEYED})
async def metrics(request: Request) -> Response:
    """Gives the metrics in the format of Prometheus."""
    return Response(AppState.of(request).metrics.text(), headers={"Content-Type": METRICS})


@router.get("/runs", responses={200: {"model": RunsAnswer}, **KEYED})
async def runs(request: Request) -> JSONResponse:
    """Lists the training runs in the folder given with --runs, the newest first."""
    folder = AppState.of(request).runs
    return JSONResponse({"runs": await asyncio.to_thread(lambda: [r.summary() for r in list_runs(folder).values()])})


@router.get(
    "/runs/{name}",
    responses={200: {"model": RunAnswer}, 400: ERROR_RESPONSES[400], 404: {"model": ErrorAnswer}, **KEYED},
)
async def run(request: Request, name: str, after: Annotated[int, Query(ge=0, le=10**9)] = 0) -> JSONResponse:
    """Gives a run's recipe, and its log from line `after` on; `next` is the value of `after` for the next request."""
    folder = AppState.of(request).runs
    found = (await asyncio.to_thread(list_runs, folder)).get(name)
    if found is None:
        raise RequestError(404, "there is no such run; ask /runs for the list")
    records, following = await asyncio.to_thread(found.records, after)
    answer = {
        "name": name, "state": found.state, "verdict": found.verdict, "recipe": found.recipe(), "records": records,
        "next": following,
    }  # fmt: skip
    return JSONResponse(answer)
