"""Families by name: what `config.json` and a recipe call a model."""

from __future__ import annotations

from typing import Any

from headwise.errors import ModelError
from headwise.models.lm import LanguageModel
from headwise.models.transformer import Transformer

Model = Transformer | LanguageModel
FAMILIES: dict[str, type[Transformer] | type[LanguageModel]] = {"transformer": Transformer, "lm": LanguageModel}


def build_model(family: str, architecture: dict[str, Any]) -> Model:
    """A model with new weights."""
    if family not in FAMILIES:
        raise ModelError(f"unknown model family '{family}'; this version has {', '.join(FAMILIES)}")
    return FAMILIES[family](**architecture)
