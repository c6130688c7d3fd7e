"""A server whose engines misbehave on demand.

Arguments: models (NAME=DIR, separated by :), how, a file or "", slots, timeout, arrival (see Limits).

    hang     holds every search while the file exists, and cannot be stopped
    endless  never ends a search of a sentence of more than 5 tokens, but can be stopped, as real engines can
    later    answers the first search of each request and holds the second while the file exists, but can be stopped;
             meanwhile there is a file beside the other, see held
    torch    like endless, but cannot be stopped, and is inside of torch all the time
    fail     fails on torch while the file exists

A language model is slow, whatever is asked. Where no timeout is given, it is so long that even an overloaded machine
does not meet it.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headwise.cancellation import check_cancelled
from headwise.decoding.engine import AutoEngine
from headwise.serving.app import Service
from headwise.serving.limits import Limits
from headwise.serving.server import listen, run
from headwise.tasks.generate import ServedGenerator
from headwise.tasks.translate import ServedTranslator
from headwise.workflows.serve import open_models

SECONDS_PER_TOKEN = 0.02
LONG = 5  # tokens


class Rigged:
    """An engine that does something else before it searches."""

    def __init__(self, inner: Any, how: str, flag: Path, *, torch: bool) -> None:
        self.inner, self.how, self.flag, self.torch = inner, how, flag, torch
        self.searches = 0  # since the file was last seen to be missing

    def search(self, sources: Any, *arguments: Any) -> Any:
        self.misbehave(sources)
        return self.inner.search(sources, *arguments)

    def answers(self, items: Any) -> Any:
        self.misbehave(items)
        return self.inner.answers(items)

    def token_logits(self, items: Any, places: Any) -> Any:
        self.misbehave(items)
        return self.inner.token_logits(items, places)

    def misbehave(self, sources: Any) -> None:
        long = any(hasattr(source, "__len__") and len(source) > LONG for source in sources)  # a picture has no length
        while self.how == "hang" and self.flag.exists():
            time.sleep(0.005)
        self.searches = self.searches + 1 if self.flag.exists() else 0
        if self.how == "later" and self.searches == 2:
            self.hold()
        while self.how == "endless" and long:
            time.sleep(0.001)
            check_cancelled()
        if self.how == "torch" and long:
            _stay_in_torch()
        if self.how == "fail" and self.torch and self.flag.exists():
            raise RuntimeError("broken")

    def hold(self) -> None:
        held(self.flag).touch()
        try:
            while self.flag.exists():
                time.sleep(0.001)
                check_cancelled()
        finally:
            self.searches = 0
            held(self.flag).unlink()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def held(flag: Path) -> Path:
    """The file that is there while a search is held."""
    return flag.with_suffix(".held")


def _stay_in_torch() -> None:
    import torch

    torch.set_num_threads(1)
    matrix = torch.rand(700, 700)  # a product takes milliseconds, so it is likely to be cut off in the middle of one
    while True:
        matrix = (matrix @ matrix).softmax(dim=-1)


class Slow:
    """Generates so slowly that a long text takes half a minute on any machine."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def write(self, *arguments: Any, **options: Any) -> Iterator[Any]:
        for writings in self.inner.write(*arguments, **options):
            time.sleep(SECONDS_PER_TOKEN)
            yield writings

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def rig(served: Any, how: str, flag: Path) -> None:
    if isinstance(served, ServedGenerator):
        served.generator = Slow(served.generator)  # type: ignore[assignment]
    elif isinstance(served, ServedTranslator):
        engine = served.translator.engine
        assert isinstance(engine, AutoEngine)
        served.translator.engine = AutoEngine(
            Rigged(engine.fast, how, flag, torch=False), lambda: Rigged(engine.torch, how, flag, torch=True)
        )
    else:
        served.opened.engine = Rigged(served.opened.engine, how, flag, torch=False)


def main(models: str, how: str, file: str, slots: str = "1", timeout: str = "300", arrival: str = "15") -> None:
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    opened = open_models([model if "=" in model else f"rigged={model}" for model in models.split(":")])
    for served in opened:
        rig(served, how, Path(file))
    listening = listen("127.0.0.1", 0)
    print(f"Headwise is at http://127.0.0.1:{listening.getsockname()[1]}", file=sys.stderr, flush=True)
    limits = Limits(queue=4, slots=int(slots), timeout=float(timeout), grace=1.0, arrival=float(arrival))
    run(Service(opened, limits=limits), listening)


if __name__ == "__main__":
    main(*sys.argv[1:])
