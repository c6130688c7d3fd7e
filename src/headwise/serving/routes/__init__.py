"""The routes of the server: one file per task, named like the task; others serve every model or the server itself.

A file here has a `router` and the `bodies` that its handlers read. The file of a task also has `open_model`, which
gives an opened model of that task its queues.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, cast

from starlette.routing import compile_path

from headwise.errors import UsageError

if TYPE_CHECKING:
    from fastapi import APIRouter
    from fastapi.routing import APIRoute
    from pydantic import BaseModel

    from headwise.serving.batch_queue import BatchQueue
    from headwise.serving.limits import Limits
    from headwise.serving.model_index import ModelIndex
    from headwise.serving.served_models import ServedModel

FindQueue = Callable[["ModelIndex", dict[str, Any]], "BatchQueue | None"]
MakeQueue = Callable[[str, int], "BatchQueue"]  # from its name in the metrics and its number of threads

_registered: dict[str, TaskRoutes] = {}


class Routes(Protocol):
    """A module with a router.

    It may also have `open_paths`, which the guard lets through without a key, `upload_limits`: the most bytes of a
    request by path, where files are taken, and `queue_of`: by path, a function from a request's fields to the queue
    that the request will wait in, or to None if that cannot be told at a glance.
    """

    router: APIRouter
    bodies: tuple[type[BaseModel], ...]  # for the OpenAPI schema


class TaskRoutes(Routes, Protocol):
    """The routes of one task."""

    def open_model(self, served: Any, make_queue: MakeQueue, limits: Limits) -> ServedModel:
        """Gives an opened model its queues; `served` is what the task's own `serve` returned."""
        ...


def task_routes(task: str) -> TaskRoutes:
    """Finds the routes of a task by its name."""
    if task in _registered:
        return _registered[task]
    found = _module(task) if task in _file_names() else None
    if not hasattr(found, "open_model"):
        raise UsageError(f"models of the task '{task}' cannot be served by this version; upgrade headwise")
    return cast(TaskRoutes, found)


def all_routes() -> list[Routes]:
    """Lists everything that has a router, the routes of tasks first: these get most of the requests."""
    modules = [_module(name) for name in _file_names() if name not in _registered]
    found = [*_registered.values(), *(module for module in modules if hasattr(module, "router"))]
    return sorted(found, key=lambda routes: not hasattr(routes, "open_model"))


def open_paths() -> frozenset[str]:
    """Collects the paths that are answered without a key, or whose handlers look for the key themselves."""
    return frozenset(path for routes in all_routes() for path in getattr(routes, "open_paths", ()))


def upload_limits() -> dict[str, int]:
    """Collects the paths that take files, with the most bytes of a request to them."""
    return {path: most for routes in all_routes() for path, most in getattr(routes, "upload_limits", {}).items()}


def queue_finders() -> dict[str, FindQueue]:
    """Collects the functions `queue_of` by path. They get fields that nobody has checked."""
    return {path: find for routes in all_routes() for path, find in getattr(routes, "queue_of", {}).items()}


def path_templates() -> Callable[[str], str]:
    """Makes a function from a path to its route's template, such as /runs/{name}, or to "unknown"."""
    paths = ["/openapi.json", "/page/{file:path}", *(r.path for routes in all_routes() for r in _api_routes(routes))]
    patterns = [(compile_path(path)[0], path.replace(":path}", "}")) for path in dict.fromkeys(paths)]
    return lambda path: next((template for pattern, template in patterns if pattern.match(path)), "unknown")


def _api_routes(routes: Routes) -> list[APIRoute]:
    from fastapi.routing import APIRoute

    return [route for route in routes.router.routes if isinstance(route, APIRoute)]


def register_routes(task: str, routes: TaskRoutes) -> None:
    """Makes the routes of a task known that has no file here: one of another package, or of a test."""
    _registered[task] = routes


def _file_names() -> list[str]:
    return [module.name for module in pkgutil.iter_modules(__path__)]


def _module(name: str) -> Any:
    return importlib.import_module(f"{__name__}.{name}")
