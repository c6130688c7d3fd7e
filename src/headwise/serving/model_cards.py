"""What a model's directory tells about it, for people: task, family, size, data, licence, scores. Reads no file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from headwise.bundle.directory import Bundle
from headwise.tasks.interface import Facts
from headwise.workflows.info import numbers
from headwise.workflows.models import card_scores

ABOUT = ("good_for", "limits", "trained_on", "licence", "source")


class CardScore(BaseModel):
    test: str
    metric: str
    value: float
    signature: str = Field(description="What makes the score comparable.")
    engine: str


class ModelCard(BaseModel):
    name: str
    title: str | None
    task: str
    reads: str
    family: str
    family_about: str
    languages: list[str]
    parameters: int
    precision: str = Field(description="Of the stored weights.")
    engine: str
    context: int | None
    architecture: dict[str, Any]
    good_for: str | None
    limits: str | None
    trained_on: str | None
    sentences: int | None = Field(description="That it was trained on.")
    licence: str | None = Field(description="Of the data.")
    source: str | None
    validation: dict[str, float] = Field(description="Scores at the end of training.")
    tests: list[CardScore]
    headwise: str | None = Field(description="The version that wrote it.")


def card_of(facts: Facts) -> dict[str, Any]:
    """Makes the card of a model; what is not known of it is None or empty."""
    bundle = facts.bundle or Bundle(Path(), "", {})
    card = bundle.card
    about, data = _part(card, "about"), _part(card, "data")
    sentences = data.get("sentences")
    return {
        "name": facts.name,
        "title": facts.title,
        "task": facts.kind,
        "reads": facts.reads,
        "family": bundle.family,
        "family_about": bundle.declared.about if bundle.family else "",
        "languages": list(facts.languages),
        "parameters": facts.parameters,
        "precision": bundle.precision,
        "engine": facts.engine,
        "context": facts.context,
        "architecture": {name: value for name, value in bundle.architecture.items() if value is not None},
        **{name: _text(about.get(name)) for name in ABOUT},
        "sentences": sentences if isinstance(sentences, int) else None,
        "validation": {
            name: value
            for name, value in numbers(card.get("validation")).items()
            if name != "step" and math.isfinite(value)
        },
        "tests": [vars(score) for score in card_scores(card)],
        "headwise": _text(card.get("headwise")),
    }


def _part(card: dict[str, Any], name: str) -> dict[str, Any]:
    found = card.get(name)
    return found if isinstance(found, dict) else {}


def _text(value: Any) -> str | None:
    return str(value) if value else None
