"""Evaluates a translation model on the test text of a recipe: each part of a mixture by itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwise.bundle.directory import Bundle
from headwise.config.recipe import load_recipe
from headwise.config.schema import Part
from headwise.errors import UsageError
from headwise.evaluation.contamination import Overlap
from headwise.tasks.interface import OnProgress
from headwise.tasks.translation_scores import EvaluateOptions, TranslationScores, evaluate_translation
from headwise.text.corpus import expand_paths


@dataclass(frozen=True)
class PartScores:
    """What `headwise evaluate --recipe` reports: the scores of every part, and their means."""

    parts: dict[str, TranslationScores]

    @property
    def overlap(self) -> Overlap | None:
        """That of the part with most test lines that were seen in training."""
        found = [scores.overlap for scores in self.parts.values() if scores.overlap is not None]
        return max(found, key=lambda one: one.estimate) if found else None

    @property
    def translations(self) -> list[str]:
        return [line for scores in self.parts.values() for line in scores.translations]

    @property
    def means(self) -> dict[str, float]:
        names = [score.name for score in next(iter(self.parts.values())).scores]
        values = {name: [s.value for p in self.parts.values() for s in p.scores if s.name == name] for name in names}
        return {name: sum(found) / len(found) for name, found in values.items()}

    def lines(self) -> list[str]:
        rows = [row for name, scores in self.parts.items() for row in (f"{name}:", *scores.lines())]
        return [*rows, "mean:", *(f"{name:<6} {value:6.2f}" for name, value in self.means.items())]

    def as_dict(self) -> dict[str, Any]:
        return {"parts": {name: scores.as_dict() for name, scores in self.parts.items()}, "means": self.means}


def evaluate_recipe(
    bundle: Bundle, recipe: str, on_progress: OnProgress | None = None, **asked: Any
) -> TranslationScores | PartScores:
    """Scores a model on each part's test text, or on its validation text where there is no other."""
    for name in ("source", "reference", "against", "prefix", "languages", "fields"):
        if asked.get(name):
            raise UsageError(f"--recipe says what to evaluate on: leave --{name} out")
    loaded, base = load_recipe(recipe)
    found = {}
    for part in loaded.data.parts:
        options = {**_test_text(part, recipe, base), **asked}
        found[part.name] = evaluate_translation(EvaluateOptions(bundle=bundle, **options), on_progress)
    return PartScores(found) if loaded.data.mixture else found[""]


def _test_text(part: Part, recipe: str, base: Path) -> dict[str, Any]:
    """What to evaluate on, and what the model is told to do with it."""
    texts = part.test if part.test.source else part.validation
    sources, references = (expand_paths(paths, base) for paths in (texts.source, texts.target))
    if len(sources) != 1:
        where = f" of part '{part.name}'" if part.name else ""
        raise UsageError(f"{recipe}: the test text{where} must be one file, not {len(sources)}; set data.test.source")
    return {
        "source": sources[0], "reference": references, "fields": part.fields,
        "prefix": part.prefix if part.name or part.prefix else None,
        "language": part.languages[-1] if part.languages else "",
    }  # fmt: skip
