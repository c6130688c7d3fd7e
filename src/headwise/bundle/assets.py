"""What a model needs besides its weights: tokenizers, names of classes, how pictures and sound are read.

    tokenizer.json       (or source.tokenizer.json and target.tokenizer.json) of models that read or write text
    labels.json          {"labels": [name, …]} of models that choose among classes, in the order of their outputs
    preprocessing.json   of models that read pictures or sound: sizes, normalisation, …; its task checks what it says.
                         {"longest": 256} of sentence vectors: tokens of a text that are read, if not all that fit;
                         {"texts": 2} of classifiers of pairs; {"ends": 2}: tokens between the texts, if not one

Needs no torch.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Protocol

from pydantic import Field, ValidationError

from headwise.bundle.declaration import explain
from headwise.bundle.directory import read_json, write_json
from headwise.config.family import Section
from headwise.errors import ModelError
from headwise.text.tokenizer import TokenizerPair

LABELS, PREPROCESSING = "labels.json", "preprocessing.json"
LONGEST, TEXTS, ENDS = "longest", "texts", "ends"  # in preprocessing.json
MOST_LABELS = 100_000
_LARGEST_LABELS, _LARGEST_PREPROCESSING = 16 << 20, 1 << 20  # bytes


class Saved(Protocol):
    """Anything that is written beside the weights: assets, or tokenizers alone."""

    def save(self, directory: Path) -> object: ...


class _Labels(Section):
    labels: Annotated[list[Annotated[str, Field(min_length=1, max_length=1000)]], Field(max_length=MOST_LABELS)]


@dataclass(frozen=True)
class Assets:
    """The files of a model directory that say how its inputs are read and its outputs are named."""

    text: TokenizerPair | None = None
    labels: tuple[str, ...] = ()
    preprocessing: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tokenizers(self) -> TokenizerPair:
        """The tokenizers of a model that must have them."""
        if self.text is None:
            raise ModelError("this model has no tokenizer: it does not read or write text")
        return self.text

    @property
    def texts(self) -> int:
        """How many texts an input has."""
        return 2 if self.preprocessing.get(TEXTS) == 2 else 1

    @property
    def ends(self) -> int:
        """How many ends of sentence stand between the texts of a pair."""
        return 2 if self.preprocessing.get(ENDS) == 2 else 1

    def longest(self, network: int | None) -> int | None:
        """The tokens of a text that are read: as many as the network can, or fewer if the model says so."""
        told = self.preprocessing.get(LONGEST)
        if told is not None and (type(told) is not int or told < 1):
            raise ModelError(f"{PREPROCESSING}: {LONGEST} must be a whole number from 1, not {told!r}")
        return min((most for most in (network, told) if most is not None), default=None)

    def save(self, directory: Path) -> None:
        if self.text is not None:
            self.text.save(directory)
        if self.labels:
            write_json(directory / LABELS, {"labels": list(self.labels)})
        if self.preprocessing:
            write_json(directory / PREPROCESSING, dict(self.preprocessing))

    @classmethod
    def load(cls, directory: Path) -> Assets:
        """Reads those of the files that there are."""
        names = set(os.listdir(directory))
        text = TokenizerPair.load(directory) if any(name.endswith("tokenizer.json") for name in names) else None
        labels = _read_labels(directory / LABELS) if LABELS in names else ()
        return cls(text, labels, read_preprocessing(directory))


def read_preprocessing(directory: Path) -> dict[str, Any]:
    """How the model reads pictures or sound; empty for one of text."""
    file = directory / PREPROCESSING
    return read_json(file, _LARGEST_PREPROCESSING) if file.is_file() else {}


def _read_labels(file: Path) -> tuple[str, ...]:
    try:
        labels = _Labels.model_validate(read_json(file, _LARGEST_LABELS)).labels
    except ValidationError as error:
        raise ModelError(f"{file} is damaged: {explain(error)}; take another copy of the model") from None
    if len(set(labels)) < len(labels):
        raise ModelError(f"{file} is damaged: a label occurs in it twice; take another copy of the model")
    return tuple(labels)
