"""Bodies of requests and answers that belong to no task, and the types that bodies share.

Bounds stand in the schemas, so that they are checked, and documented, in one place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from headwise.serving.limits import MAX_TEXT

Name = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Text = Annotated[str, StringConstraints(max_length=MAX_TEXT)]


def _whole(value: Any) -> Any:
    """Accepts 1.0 as a whole number: JSON does not distinguish it from 1."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(_whole)]
Seed = Annotated[Whole, Field(ge=-(2**63), lt=2**63)]


def check_characters(texts: Sequence[str], most: int = MAX_TEXT) -> None:
    """Raises a ValueError if texts have too many characters together."""
    if sum(map(len, texts)) > most:
        raise ValueError(f"all texts together may have {most:,} characters")


class RequestBody(BaseModel):
    """Rejects unknown fields: a misspelt one would otherwise be ignored silently."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


# ---- answers


class ErrorAnswer(BaseModel):
    error: str


class ModelFacts(BaseModel):
    name: str
    kind: str = Field(description="The model's task.")
    languages: list[str]
    parameters: int
    engine: str
    context: int | None
    title: str | None
    about: str | None
    default_beam: int | None
    reads: str = Field(description="text, pair (of texts), image or sound")


class ModelsAnswer(BaseModel):
    models: list[ModelFacts]


class HealthAnswer(BaseModel):
    status: Literal["ok", "ready", "not ready"]
    models: dict[str, str] | None = None


class RunFacts(BaseModel):
    name: str
    state: Literal["running", "finished", "failed", "stopped"]
    step: int
    steps: int | None
    updated: float


class RunsAnswer(BaseModel):
    runs: list[RunFacts]


class RunAnswer(BaseModel):
    name: str
    state: Literal["running", "finished", "failed", "stopped"]
    verdict: str = Field(description="How a finished run went, and what to change.")
    recipe: str
    records: list[dict[str, Any]]
    next: int
