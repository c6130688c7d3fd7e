"""What config.json and card.json may say: types, ranges, and the hash of config.json itself. Needs no torch.

A model directory may come from anywhere. Whatever it declares passes the same checks as a recipe before anything is
made of it: hyperparameters those of the family, decoding defaults those of `[decoding]`.
"""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from headwise.config.family import Section
from headwise.config.schema import Decoding, Language
from headwise.errors import ModelError
from headwise.files import shortened

HASH = "sha256"  # the key of config.json that holds the hash of all the others
LARGEST_SETTING = 1 << 20  # of a hyperparameter that no tensor bounds, such as max_length

_Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_FileName = Annotated[str, Field(min_length=1, max_length=255)]


class Declaration(Section):
    """config.json."""

    format: Annotated[int, Field(ge=1)]
    family: Annotated[str, Field(max_length=100)]
    task: Annotated[str, Field(max_length=100)] = ""
    architecture: Annotated[dict[str, Any], Field(max_length=200)]
    languages: Annotated[list[Language], Field(max_length=1000)]
    decoding: dict[str, Any]
    precision: str = "float32"
    files: Annotated[dict[_FileName, _Digest], Field(max_length=1000)]
    sha256: str | None = None

    @model_validator(mode="after")
    def _search_is_possible(self) -> Declaration:
        Decoding.model_validate(self.decoding)
        return self


class _Calibration(BaseModel):
    """Knots of the line from log-probabilities to quality, see decoding/confidence.py."""

    mean_log_prob: Annotated[list[float], Field(min_length=1, max_length=10_000)]
    quality: list[float]

    @model_validator(mode="after")
    def _knots_are_in_order(self) -> _Calibration:
        if len(self.quality) != len(self.mean_log_prob):
            raise ValueError("one quality for each mean_log_prob")
        if any(not a < b for a, b in zip(self.mean_log_prob, self.mean_log_prob[1:], strict=False)):
            raise ValueError("a list that ascends")
        return self


class _Score(Section):
    test: str
    metric: str
    value: float
    signature: str
    engine: str


class Card(BaseModel):
    """card.json: only what is computed with is checked, the rest is for people."""

    model_config = ConfigDict(extra="allow")

    calibration: _Calibration | dict[str, Any] | None = Field(None, union_mode="left_to_right")
    scores: list[_Score] | None = None
    temperature: Annotated[float, Field(gt=0, le=1000)] | None = None  # that logits of labels are divided by

    @model_validator(mode="after")
    def _calibration_is_one(self) -> Card:
        if isinstance(self.calibration, dict) and self.calibration:
            _Calibration.model_validate(self.calibration)
        return self


def read_declaration(values: dict[str, Any], place: object) -> Declaration:
    """The values of config.json, checked; `place` is what an error names."""
    try:
        return Declaration.model_validate(values)
    except ValidationError as error:
        raise ModelError(f"{place} is damaged: {explain(error)}; take another copy of the model") from None


def check_card(values: dict[str, Any], place: object) -> None:
    try:
        Card.model_validate(values)
    except ValidationError as error:
        raise ModelError(f"{place} is damaged: {explain(error)}; take another copy of the model") from None


def explain(error: ValidationError) -> str:
    """The first mistake in a few words, however long what was given is."""
    first = error.errors(include_url=False)[0]
    name = shortened(".".join(str(part) for part in first["loc"]) or "it")
    if first["type"] == "missing":
        return f"it has no '{name}'"
    if first["type"] == "extra_forbidden":
        return f"it has an unknown key '{name}'"
    problem = first["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    return f"{name} must be {problem}, not {shortened(repr(first['input']), 60)}"


def config_hash(config: dict[str, Any]) -> str:
    """SHA-256 of everything that config.json says but its own hash, however it is laid out."""
    rest = {name: value for name, value in config.items() if name != HASH}
    written = json.dumps(rest, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()
