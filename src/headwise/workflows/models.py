"""Describes the models that come with Headwise, and finds translators by languages. Does not import torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwise.bundle.directory import CARD, CONFIG, read_json
from headwise.bundle.shipped import locate, shipped_directories
from headwise.errors import ModelError, UsageError
from headwise.text.languages import base_language

HOW_TO_GET_ONE = "train one (headwise train RECIPE) or give another model directory with --model DIR"
_TASKS = ("translate", "generate", "transcribe", "classify")  # the order of a list


@dataclass(frozen=True)
class ShippedScore:
    """One score of a card, with the signature that makes it comparable."""

    test: str  # the test set
    metric: str
    value: float
    signature: str
    engine: str  # int8: the fast engine, the default where it is there; float16: torch with the stored weights


@dataclass(frozen=True)
class ShippedModel:
    """What is known of a shipped model without loading its weights."""

    name: str
    path: Path
    task: str
    source: str  # language codes; a model of one language has no target
    target: str
    size: int  # bytes, including the export for the fast engine
    good_for: str
    trained_on: str
    licence: str  # of the data
    scores: tuple[ShippedScore, ...]

    @property
    def languages(self) -> str:
        return " → ".join(code for code in (self.source, self.target) if code)

    @property
    def score(self) -> ShippedScore | None:
        """The main score of what a user gets by default, on the data that comes last in the card: the test set.

        A validation score would be too high, as it selected the model.
        """
        return next((score for score in self.scores if score.test == self.scores[-1].test), None)


def shipped_models() -> list[ShippedModel]:
    """Returns all shipped models by task and name; an empty list if the installation has none."""
    found = [_describe(name, path) for name, path in shipped_directories().items()]
    return sorted(found, key=lambda model: _TASKS.index(model.task) if model.task in _TASKS else len(_TASKS))


def find_model(source: str = "", target: str = "") -> Path:
    """Finds the shipped model of a language pair. One language is enough if only one model fits."""
    models = _translators()
    found = [m for m in models if _same(source, m.source) and _same(target, m.target)]
    if len({model.languages for model in found}) == 1:
        return found[0].path
    if found:
        option, codes = ("--from", [m.source for m in found]) if target else ("--to", [m.target for m in found])
        choices = " or ".join(f"{option} {code}" for code in dict.fromkeys(codes))
        given = f"to {target}" if target else f"from {source}"
        raise UsageError(f"more than one model translates {given}: add {choices}")
    pair = " ".join(part for part in (f"from {source}" if source else "", f"to {target}" if target else "") if part)
    if not models:
        raise UsageError(f"this installation came without models; {HOW_TO_GET_ONE}")
    there = ", ".join(model.languages for model in models)
    raise UsageError(f"no shipped model translates {pair}; there are {there}; {HOW_TO_GET_ONE}")


def choose_model(model: str = "", source: str = "", target: str = "") -> Path:
    """Resolves --model, --from and --to to a directory: given as such, as a shipped model's name, or by languages."""
    if model:  # languages then choose among what the model was trained for
        return locate(model)
    if source or target:
        return find_model(source, target)
    languages = ", ".join(sorted({shipped.target for shipped in _translators()}))
    remedy = f"--to LANGUAGE ({languages}) for a shipped model, or --model DIR, such as RUN/model"
    raise UsageError(f"no model: give {remedy if languages else '--model DIR, such as RUN/model'}")


def _translators() -> list[ShippedModel]:
    return [model for model in shipped_models() if model.task == "translate"]


def _same(asked: str, code: str) -> bool:
    """Compares language codes: '' matches any; zh-CN and ZH are zh."""
    return not asked or base_language(asked) == base_language(code)


def _describe(name: str, path: Path) -> ShippedModel:
    config, card = read_json(path / CONFIG), read_json(path / CARD)
    about = card.get("about")
    task, languages = str(config.get("task", "")), config.get("languages")
    codes = [str(code) for code in languages] if isinstance(languages, list) else []
    if task == "translate" and len(codes) != 2:
        raise ModelError(f"{path / CONFIG} is damaged: it has no pair of languages; reinstall Headwise")
    source, target = (*codes, "", "")[:2]
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    told = [str(about.get(key, "")) if isinstance(about, dict) else "" for key in ("good_for", "trained_on", "licence")]
    good_for, trained_on, licence = told
    return ShippedModel(name, path, task, source, target, size, good_for, trained_on, licence, tuple(card_scores(card)))


def card_scores(card: dict[str, Any]) -> list[ShippedScore]:
    """Returns the test scores in a card, which only shipped models have."""
    found = card.get("scores")
    return [ShippedScore(**score) for score in found] if isinstance(found, list) else []
