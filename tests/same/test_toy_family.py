"""To add a family and a task is to add files: a toy of each, defined here, goes the whole way with no edit in src.

This is also the example of CONTRIBUTING.md: the declaration, the network, the task, and its route.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.testclient import TestClient
from torch import Tensor, nn

import headwise as hw
from headwise import tasks
from headwise.bundle.assets import Assets
from headwise.bundle.directory import Bundle, open_bundle
from headwise.bundle.weights import load_model
from headwise.config import families
from headwise.config.families import register_family
from headwise.config.family import Family, Positive, Settings
from headwise.config.recipe import build_recipe
from headwise.config.schema import Recipe
from headwise.data.pairs import PairBatches
from headwise.data.store import Store
from headwise.decoding.options import SearchOptions
from headwise.decoding.torch_engine import TorchEngine
from headwise.evaluation.contamination import Overlap
from headwise.look.capture import Look, look_at_translation
from headwise.models.inputs import allowed_by_lengths
from headwise.models.interface import Network
from headwise.nn.attention import Attention, scaled_dot_product_attention
from headwise.nn.embedding import Embedding
from headwise.serving import routes
from headwise.serving.app import Service
from headwise.serving.app_state import AppState
from headwise.serving.limits import Limits
from headwise.serving.routes import MakeQueue, register_routes
from headwise.serving.served_models import ServedModel
from headwise.tasks import register_task
from headwise.tasks.interface import Facts
from headwise.tasks.text_data import TextTask
from headwise.text.lines import read_lines
from headwise.text.tokenizer import TokenizerPair
from headwise.training.hooks import Scorer
from headwise.workflows.evaluate import evaluate
from headwise.workflows.look import look_inside
from headwise.workflows.serve import open_models
from headwise.workflows.train import train

# ---- config/families/toy.py


class ToySettings(Settings):
    model_dim: Positive = Field(16, description="width of the recurrent state")


TOY = Family(
    name="toy",
    about="a recurrent network with one attention",
    tasks=("echo",),
    network=f"{__name__}:ToyNetwork",
    settings=ToySettings,
    sizes=("vocab",),
    presets={"toy-small": {}, "toy-large": {"model_dim": 32}},
    default_preset="toy-small",
)


# ---- models/toy.py


class ToyAttention(Attention):
    """A new kind of attention: it may be observed like any other."""

    def forward(self, query: Tensor, key: Tensor, value: Tensor, allowed: Tensor | None = None) -> Tensor:
        output, weights = scaled_dot_product_attention(query, key, value, allowed)
        if self.observer is not None:
            self.observer(
                lambda: (weights[:, None], None if allowed is None else allowed[:, None])
            )  # (B, 1 head, T, S)
        return output


@dataclass
class ToyState:
    hidden: Tensor  # (rows, D)
    memory: Tensor  # (sources, S, D)
    allowed: Tensor | None
    rows: int  # per source
    length: int = 0

    def reorder(self, indices: Tensor) -> None:
        width = len(self.hidden) // len(self.memory)
        sources = indices.view(-1, self.rows)[:, 0] // width
        self.hidden, self.memory = self.hidden[indices], self.memory[sources]
        self.allowed = None if self.allowed is None else self.allowed[sources]


class ToyNetwork(Network):
    """A GRU that reads the source, and another one that writes and looks back at it."""

    def __init__(self, *, vocab: int, **settings: Any) -> None:
        super().__init__()
        sizes = ToySettings.of(settings)
        self.architecture = {"vocab": vocab, **sizes.model_dump()}
        width = sizes.model_dim
        self.embedding, self.output = Embedding(vocab, width), Embedding(vocab, width)
        self.reader, self.writer = (nn.GRU(width, width, batch_first=True) for _ in range(2))
        self.attention, self.join = ToyAttention(), nn.Linear(2 * width, width)

    def forward(self, source: Tensor, target: Tensor, lengths: Tensor | None = None) -> Tensor:
        return self.output.logits(self.states(source, target, lengths))

    def states(self, source: Tensor, target: Tensor, lengths: Tensor | None = None) -> Tensor:
        memory = self.reader(self.embedding(source))[0]
        hidden = self.writer(self.embedding(target))[0]
        allowed = allowed_by_lengths(lengths, source.size(1))
        return self._look(hidden, memory, None if allowed is None else allowed[:, 0])

    def _look(self, hidden: Tensor, memory: Tensor, allowed: Tensor | None) -> Tensor:
        seen = self.attention(hidden, memory, memory, allowed)
        return torch.tanh(self.join(torch.cat((hidden, seen), dim=-1)))

    def start(self, source: tuple[Tensor, ...] | None, rows: int) -> ToyState:
        assert source is not None
        memory = self.reader(self.embedding(source[0]))[0]
        allowed = allowed_by_lengths(source[1], source[0].size(1))
        hidden = memory.new_zeros(len(memory) * rows, memory.size(2))
        return ToyState(hidden, memory, None if allowed is None else allowed[:, 0], rows)

    def advance(self, state: ToyState, tokens: Tensor) -> Tensor:
        hidden = state.hidden[: len(tokens)][None]
        state.hidden = self.writer(self.embedding(tokens[:, None]), hidden)[1][0]
        state.length += 1
        width = len(tokens) // len(state.memory)
        grouped = state.hidden.view(len(state.memory), width, -1)
        return self._look(grouped, state.memory, state.allowed).flatten(0, 1)

    def attention_names(self) -> dict[str, list[str]]:
        return {"cross": ["attention"]}


# ---- tasks/echo.py


@dataclass(frozen=True)
class EchoScores:
    right: float
    overlap: Overlap | None = None

    def lines(self) -> list[str]:
        return [f"right {self.right:.2f}"]

    def as_dict(self) -> dict[str, Any]:
        return {"right": self.right}


class Echoer:
    """What `headwise.load` gives for a model of this task."""

    def __init__(self, bundle: Bundle, pair: TokenizerPair, network: Network) -> None:
        self.bundle, self.pair, self.network = bundle, pair, network

    def echo(self, texts: list[str], beam: int = 1) -> list[str]:
        sources = self.pair.source.encode_batch(texts)
        found = TorchEngine(self.network).search(sources, SearchOptions(beam=beam, max_extra=3))
        return [self.pair.target.decode(hypotheses[0].tokens) for hypotheses in found]


class Echo(TextTask):
    """Says what it reads."""

    name, reads, scores = "echo", (("text",),), ("right",)

    def sizes(self, assets: Assets, recipe: Recipe) -> dict[str, Any]:
        return {"vocab": assets.tokenizers.source.size}

    def batches(
        self, store: Store, recipe: Recipe, assets: Assets, max_length: int | None, **options: Any
    ) -> PairBatches:
        """A text is its own target."""
        settings = recipe.training
        return PairBatches(store, settings.batch_tokens, settings.seed, sides=("text", "text"), **options)

    def scorer(self, network: Network, assets: Assets, recipe: Recipe) -> Scorer:
        texts = [line for file in recipe.data.validation.text for line in read_lines(file)]

        def measure() -> tuple[dict[str, float], list[tuple[str, str, str]]]:
            outputs = Echoer(Bundle(Path(), "toy", {}), assets.tokenizers, network).echo(texts)
            right = sum(map(str.__eq__, texts, outputs)) / len(texts)
            return {"right": right}, list(zip(texts, texts, outputs, strict=True))[:1]

        return measure

    def open(self, bundle: Bundle, engine: str = "auto", **options: Any) -> Echoer:
        return Echoer(bundle, TokenizerPair.load(bundle.path), load_model(bundle))

    def evaluate(self, bundle: Bundle, on_progress: Any = None, **asked: Any) -> EchoScores:
        texts = read_lines(asked["text"])
        outputs = self.open(bundle).echo(texts)
        return EchoScores(sum(map(str.__eq__, texts, outputs)) / len(texts))

    def look(self, opened: Echoer, item: str, target: str | None = None, **options: Any) -> Look:
        ids = opened.pair.source.encode(item)
        return look_at_translation(opened.network, opened.pair, ids, ids)

    def serve(self, name: str, bundle: Bundle, engine: str, precision: str) -> ServedEcho:
        return ServedEcho(name, self.open(bundle))


# ---- serving/routes/echo.py


class ServedEcho:
    def __init__(self, name: str, opened: Echoer) -> None:
        self.opened, self.facts = opened, Facts.of(name, opened.bundle, "torch")

    def probe(self) -> None:
        self.opened.echo(["one"])

    def look(self, text: str, target: str | None) -> str:
        return repr(Echo().look(self.opened, text))


class EchoModel(ServedModel):
    served: ServedEcho

    async def echo(self, texts: list[str]) -> list[str]:
        return list(await self.queue.submit(EchoWork(self), texts, [len(text) for text in texts]))


@dataclass(frozen=True)
class EchoWork:
    model: EchoModel

    def run(self, items: Sequence[str]) -> Sequence[str]:
        return self.model.served.opened.echo(list(items))


class EchoBody(BaseModel):
    texts: list[str]


class EchoRoutes:
    """What would be the module serving/routes/echo.py."""

    router = APIRouter()
    bodies = (EchoBody,)

    @staticmethod
    def open_model(served: ServedEcho, make_queue: MakeQueue, limits: Limits) -> EchoModel:
        queue = make_queue("echo", 1)
        return EchoModel(served, queue, queue)


@EchoRoutes.router.post("/echo")
async def echo(request: Request) -> JSONResponse:
    body = EchoBody.model_validate_json(await request.body())
    (model,) = AppState.of(request).index.of_task("echo")
    return JSONResponse({"texts": await model.echo(body.texts)})  # type: ignore[attr-defined]


# ---- the whole way


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    register_family(TOY)
    register_task(Echo())
    register_routes("echo", EchoRoutes())
    yield
    families._registered.pop("toy")
    tasks._registered.pop("echo")
    routes._registered.pop("echo")


def lines(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [
        " ".join(draw.choices(["one", "two", "three", "four", "five", "six"], k=draw.randint(1, 5)))
        for _ in range(count)
    ]


def toy_recipe(folder: Path, steps: int) -> Recipe:
    for name, count, seed in (("train", 200, 1), ("valid", 20, 2)):
        (folder / f"{name}.txt").write_text("\n".join(lines(count, seed)) + "\n", encoding="utf-8")
    values: dict[str, Any] = {
        "data": {"text": "train.txt", "validation": {"text": "valid.txt"}},
        "tokenizer": {"kind": "word"},
        "model": {"family": "toy", "preset": "toy-large"},
        "training": {
            "steps": steps, "batch_tokens": 200, "schedule": "constant", "learning_rate": 0.01, "warmup": 5,
            "label_smoothing": 0.0, "validate_every": 20, "save_every": 20, "log_every": 10, "best": "right",
        },
    }  # fmt: skip
    return build_recipe(values)


def weights(model: Path) -> bytes:
    return (model / "model.safetensors").read_bytes()


def test_a_toy_family_and_a_toy_task_go_the_whole_way(tmp_path: Path) -> None:
    finished = train(toy_recipe(tmp_path, 40), tmp_path, tmp_path / "run")
    records = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    losses = [record["log_loss"] for record in records if record["event"] == "train"]
    assert losses[-1] < losses[0], "it learns"
    assert all("right" in record for record in records if record["event"] == "validation"), "by its own score"

    bundle = open_bundle(finished.model)
    assert (bundle.family, bundle.task_name, bundle.settings.model_dump()) == ("toy", "echo", {"model_dim": 32})
    echoer = hw.load(finished.model)
    texts = lines(10, seed=3)
    assert len(echoer.echo(texts)) == 10
    assert len(echoer.echo(texts, beam=3)) == 10, "beam search needs no more than `start` and `advance`"
    (tmp_path / "test.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    scores = evaluate(str(finished.model), text=str(tmp_path / "test.txt"))
    assert scores.as_dict()["right"] == pytest.approx(sum(map(str.__eq__, texts, echoer.echo(texts))) / 10), (
        "evaluate decodes as the loaded model does"
    )

    look = look_inside(finished.model, "one two three")
    assert look.attention["cross"].shape == (1, 1, 4, 4)
    assert look.attention["cross"].sum(axis=-1) == pytest.approx(1.0, abs=1e-5)

    service = Service(open_models([f"toy={finished.model}"]))
    with TestClient(service, base_url="http://127.0.0.1") as client:
        assert client.get("/health/ready").json()["models"] == {"toy": "ready"}
        assert client.get("/models").json()["models"][0]["kind"] == "echo"
        assert client.post("/echo", json={"texts": texts}).json() == {"texts": echoer.echo(texts)}
        assert "cross" in client.post("/look", json={"text": "one two"}).text


def test_a_toy_run_that_is_resumed_ends_with_the_weights_of_one_that_was_not(tmp_path: Path) -> None:
    for name in ("whole", "parts"):
        (tmp_path / name).mkdir()
    whole = train(toy_recipe(tmp_path / "whole", 40), tmp_path / "whole", tmp_path / "whole" / "run")
    parts = tmp_path / "parts"
    train(toy_recipe(parts, 20), parts, parts / "run")
    resumed = train(toy_recipe(parts, 40), parts, parts / "run")
    assert weights(whole.run / "checkpoints/step-00000040/model") == weights(
        resumed.run / "checkpoints/step-00000040/model"
    )
