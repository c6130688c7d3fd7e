"""A task is served by its routes alone: a file in routes/, or what is registered in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from fastapi import APIRouter, Request
from fastapi.testclient import TestClient
from pydantic import BaseModel

from headwise.errors import UsageError
from headwise.serving import routes
from headwise.serving.access import AccessRules
from headwise.serving.app import Service
from headwise.serving.app_state import AppState
from headwise.serving.batch_queue import BatchQueue
from headwise.serving.limits import Limits
from headwise.serving.requests import body_schema, read_body, unless_client_leaves
from headwise.serving.schemas import RequestBody
from headwise.serving.served_models import ServedModel
from headwise.tasks.interface import Facts

KEY = "a-key-that-nobody-guesses"


class Reverser:
    """An opened model of the toy task: it reverses texts."""

    facts = Facts("mirror", "toy", (), 0, "none", None, None, None, None)

    def probe(self) -> None:
        assert self.reverse(["ab"]) == ["ba"]

    def look(self, text: str, target: str | None) -> str:
        return f"<p>{text}</p>"

    def reverse(self, texts: Sequence[str]) -> list[str]:
        return [text[::-1] for text in texts]


class ReverseBody(RequestBody):
    text: str


@dataclass(frozen=True)
class ReverseWork:
    served: Reverser

    def run(self, items: Sequence[str]) -> Sequence[str]:
        return self.served.reverse(items)


class ToyRoutes:
    """What a file in routes/ has."""

    router = APIRouter()
    bodies: tuple[type[BaseModel], ...] = (ReverseBody,)

    def open_model(self, served: Reverser, make_queue: Callable[[str, int], BatchQueue], limits: Limits) -> ServedModel:
        queue = make_queue("reverse", 1)
        return ServedModel(served, queue, queue)


@ToyRoutes.router.post("/reverse", openapi_extra=body_schema(ReverseBody))
async def reverse(request: Request) -> dict[str, str]:
    body = await read_body(request, ReverseBody)
    state = AppState.of(request)
    (model,) = state.index.of_task("toy")
    assert isinstance(model.served, Reverser)
    work = model.queue.submit(ReverseWork(model.served), [body.text], [len(body.text)])
    (text,) = await unless_client_leaves(request, work, state.limits.timeout)
    return {"text": text}


@pytest.fixture
def _toy_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "_registered", {})
    routes.register_routes("toy", ToyRoutes())


@pytest.fixture
def client(_toy_task: None) -> Iterator[TestClient]:
    with TestClient(Service([Reverser()]), base_url="http://localhost") as opened:
        yield opened


def test_a_registered_task_has_its_route_and_all_general_ones(client: TestClient) -> None:
    assert client.post("/reverse", json={"text": "dog"}).json() == {"text": "god"}
    assert client.post("/reverse", json={"txt": "dog"}).status_code == 400
    assert client.post("/look", json={"text": "dog"}).text == "<p>dog</p>"
    assert client.get("/health/ready").json() == {"status": "ready", "models": {"mirror": "ready"}}
    assert client.get("/models").json()["models"][0]["kind"] == "toy"
    assert 'headwise_batch_jobs_count{lane="reverse",model="mirror"}' in client.get("/metrics").text


def test_a_registered_task_is_in_the_schema(client: TestClient) -> None:
    schema = client.get("/openapi.json").json()
    assert "/reverse" in schema["paths"]
    assert "ReverseBody" in schema["components"]["schemas"]


def test_routes_of_other_tasks_say_that_they_have_no_model(client: TestClient) -> None:
    translation = client.post("/translate", json={"q": "dog", "source": "en", "target": "de"})
    assert (translation.status_code, translation.json()) == (
        400,
        {"error": "en is not supported"},
    )
    generation = client.post("/generate", json={"prompt": "dog", "model": "mirror"})
    assert (generation.status_code, "does not generate text" in generation.json()["error"]) == (400, True)
    for task in ("classify", "fill", "embed"):
        refused = client.post(f"/{task}", json={"text": "[MASK]"})
        assert (refused.status_code, f"no model of the task '{task}'" in refused.json()["error"]) == (400, True)


@pytest.mark.usefixtures("_toy_task")
def test_a_route_needs_a_key_unless_its_file_says_otherwise() -> None:
    with TestClient(Service([Reverser()], AccessRules(keys=(KEY,))), base_url="http://localhost") as client:
        assert client.post("/reverse", json={"text": "dog"}).status_code == 401
        assert client.post("/reverse", json={"text": "dog"}, headers={"X-API-Key": KEY}).status_code == 200
        assert client.get("/health/live").status_code == 200


def test_every_task_with_a_file_has_routes_that_open_its_models() -> None:
    found = [routes.task_routes(name) for name in ("translate", "generate", "classify", "fill", "embed", "transcribe")]
    assert all(one in routes.all_routes() for one in found)


@pytest.mark.parametrize("task", ["no-such-task", "server", "translation_model"])
def test_a_task_without_routes_is_refused(task: str) -> None:
    served = SimpleNamespace(facts=SimpleNamespace(name="one", kind=task))
    with pytest.raises(UsageError, match=f"task '{task}' cannot be served"):
        Service([served])  # type: ignore[list-item]
