"""Models that are opened to be served. Torch is loaded when first needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from headwise.bundle.directory import open_bundle
from headwise.bundle.shipped import shipped_directories
from headwise.errors import UsageError
from headwise.tasks import find_task
from headwise.tasks.interface import Served
from headwise.workflows.models import HOW_TO_GET_ONE, choose_model


def open_models(
    wanted: Sequence[str],
    engine: str = "auto",
    precision: str = "int8",
    tell: Callable[[str], None] = lambda line: None,
) -> list[Served]:
    """Opens models, each `DIR` or `NAME=DIR`; without any, those that came with Headwise. Each has decoded once."""
    opened: dict[str, Served] = {}
    for given, path in _named(wanted):
        bundle = open_bundle(path.resolve())  # what is opened later must be of the same model if a link is changed
        for served in find_task(bundle.task_name).serve_each(given, bundle, engine, precision):
            name = served.facts.name
            if name in opened:
                raise UsageError(f"two models are called '{name}'; name them yourself: --model NAME=DIR")
            opened[name] = served
            served.probe()
            tell(f"{name}: {path}, {served.facts.engine}")
    return list(opened.values())


def _named(wanted: Sequence[str]) -> list[tuple[str, Path]]:
    if not wanted:
        shipped = list(shipped_directories().items())
        if not shipped:
            raise UsageError(f"no model to serve: {HOW_TO_GET_ONE}")
        return shipped
    return [_name(value) for value in wanted]


def _name(value: str) -> tuple[str, Path]:
    """A run's model is called by the name of the run."""
    given, equals, rest = value.partition("=")
    if equals and not Path(value).exists():
        if not given.strip() or len(given) > 100:
            raise UsageError(f"--model {value}: a name has 1 to 100 characters")
        return given.strip(), choose_model(rest)
    path = choose_model(value)
    resolved = path.resolve()
    return (resolved.parent.name if resolved.name == "model" else resolved.name) or "model", path
