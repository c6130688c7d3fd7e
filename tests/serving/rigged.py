"""A server with a translator that hangs while a file exists, or with a language model that is slow."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headwise.serving.app import Service
from headwise.serving.limits import Limits
from headwise.serving.server import listen, run
from headwise.tasks.generate import ServedGenerator
from headwise.tasks.translate import ServedTranslator
from headwise.workflows.serve import open_models

SECONDS_PER_TOKEN = 0.02


class Hanging:
    """Holds every search back while the file exists."""

    def __init__(self, inner: Any, flag: Path) -> None:
        self.inner, self.flag = inner, flag

    def search(self, *arguments: Any) -> Any:
        while self.flag.exists():
            time.sleep(0.005)
        return self.inner.search(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


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


def main(model: str, flag: str, slots: str = "1") -> None:
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    (served,) = open_models([f"rigged={model}"])
    if isinstance(served, ServedGenerator):
        served.generator = Slow(served.generator)  # type: ignore[assignment]
    else:
        assert isinstance(served, ServedTranslator)
        served.translator.engine = Hanging(served.translator.engine, Path(flag))
    listening = listen("127.0.0.1", 0)
    print(f"Headwise is at http://127.0.0.1:{listening.getsockname()[1]}", file=sys.stderr, flush=True)
    run(Service([served], limits=Limits(queue=4, slots=int(slots), timeout=30.0, grace=1.0)), listening)


if __name__ == "__main__":
    main(*sys.argv[1:])
