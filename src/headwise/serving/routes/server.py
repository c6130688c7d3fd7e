"""The server about itself: its models, its health, its figures; training runs; the page."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse, JSONResponse, Response

from headwise.look.page import allowed_hashes
from headwise.serving.app_state import State
from headwise.serving.errors import Refusal
from headwise.serving.requests import PROBLEMS
from headwise.serving.runs import list_runs
from headwise.serving.schemas import HealthAnswer, ModelsAnswer, Problem, RunAnswer, RunsAnswer

router = APIRouter(default_response_class=Response)
PAGE = Path(__file__).parent / "page"
KEYED: dict[int | str, dict[str, Any]] = {status: PROBLEMS[status] for status in (401, 403)}
METRICS = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/", include_in_schema=False)
async def index() -> FileResponse:
    # A picture of attention is shown in a frame, which inherits this policy: its script and style are allowed by hash.
    script, style = allowed_hashes()
    policy = (
        f"default-src 'none'; script-src 'self' {script}; style-src 'self' {style}; connect-src 'self'; "
        "img-src 'self' data:; font-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    return FileResponse(PAGE / "index.html", headers={"Content-Security-Policy": policy})


@router.get("/models", responses={200: {"model": ModelsAnswer}, **KEYED})
async def models(request: Request) -> JSONResponse:
    """The models, and what each is."""
    return JSONResponse({"models": [asdict(model.facts) for model in State.of(request).shelf.models.values()]})


@router.get("/health/live", responses={200: {"model": HealthAnswer}, 403: PROBLEMS[403]})
async def live() -> JSONResponse:
    """The server answers."""
    return JSONResponse({"status": "ok"})


@router.get("/health/ready", responses={200: {"model": HealthAnswer}, 403: PROBLEMS[403], 503: {"model": HealthAnswer}})
async def ready(request: Request) -> JSONResponse:
    """Every model has just decoded something. 503 where one is stuck or fails, within 2 seconds."""
    found = list(State.of(request).shelf.models.values())
    troubles = await asyncio.gather(*(model.trouble() for model in found))
    states = {model.facts.name: trouble or "ready" for model, trouble in zip(found, troubles, strict=True)}
    fine = not any(troubles) and not request.app.state.guard.draining
    return JSONResponse({"status": "ready" if fine else "not ready", "models": states}, 200 if fine else 503)


@router.get("/metrics", responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}, **KEYED})
async def metrics(request: Request) -> Response:
    """Figures for Prometheus."""
    return Response(State.of(request).metrics.text(), headers={"Content-Type": METRICS})


@router.get("/runs", responses={200: {"model": RunsAnswer}, **KEYED})
async def runs(request: Request) -> JSONResponse:
    """The training runs in the folder that was given with --runs, the newest first."""
    folder = State.of(request).runs
    return JSONResponse({"runs": await asyncio.to_thread(lambda: [r.summary() for r in list_runs(folder).values()])})


@router.get("/runs/{name}", responses={200: {"model": RunAnswer}, 400: PROBLEMS[400], 404: {"model": Problem}, **KEYED})
async def run(request: Request, name: str, after: Annotated[int, Query(ge=0, le=10**9)] = 0) -> JSONResponse:
    """A run's recipe, and its log from line `after` on; `next` is where to go on."""
    folder = State.of(request).runs
    found = (await asyncio.to_thread(list_runs, folder)).get(name)
    if found is None:
        raise Refusal(404, "there is no such run")
    records, following = await asyncio.to_thread(found.records, after)
    answer = {
        "name": name, "state": found.state, "recipe": found.recipe(), "records": records, "next": following,
    }  # fmt: skip
    return JSONResponse(answer)
