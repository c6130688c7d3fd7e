"""Computes BLEU and chrF during training, with the decoder and the metrics that `evaluate` uses.

The parts of a mixture are scored one by one, as `bleu de-en`; `bleu` is then the mean over the parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from headwise.bundle.directory import Bundle
from headwise.bundle.weights import open_model
from headwise.config.schema import Data, Part, Recipe
from headwise.data.split import part_of_pairs
from headwise.decoding.confidence import fit_calibration
from headwise.decoding.torch_engine import TorchEngine
from headwise.decoding.translator import Translation, Translator
from headwise.evaluation.metrics import bleu, chrf
from headwise.models.interface import Network
from headwise.text.corpus import Pair, expand_paths, read_pairs
from headwise.text.tokenizer import TokenizerPair
from headwise.training.hooks import Scorer

SAMPLES = 2


@dataclass(frozen=True)
class ValidationPart:
    """Held-out text of one part of the data, with what is written before each source."""

    name: str
    languages: tuple[str, ...]
    sources: list[str]
    references: list[str]
    prefixes: list[str]

    @property
    def language(self) -> str:
        """That of the target."""
        return self.languages[-1] if self.languages else ""

    def translated(self, translator: Translator, beam: int | None = None) -> list[Translation]:
        """The sources in the language of the references."""
        meant = Translator(
            replace(translator.bundle, languages=self.languages), translator.tokenizers, translator.engine
        )
        return meant.translate(self.sources, beam=beam, source_prefix=self.prefixes)


def validation_pairs(recipe: Recipe) -> list[ValidationPart]:
    """Reads the first sentences of each part's validation text, as many as the recipe decodes; none without any."""
    data = recipe.data
    if not (data.validated or data.split):
        return []
    parts = [_pairs(part, data, recipe.training.validation_sentences) for part in data.parts]
    return [part for part in parts if part.sources]


def _pairs(part: Part, data: Data, most: int) -> ValidationPart:
    texts = part.validation if data.validated else part
    sides = (expand_paths(side, None) for side in (texts.source, texts.target))
    pairs: Iterable[Pair] = read_pairs(*sides, format=part.format, fields=part.fields)
    if not data.validated:
        pairs = (pair for pair in pairs if part_of_pairs([pair.source], data.split) == ["validation"])
    chosen = list(islice(pairs, most))
    prefixes = [pair.prefix or part.prefix for pair in chosen]
    return ValidationPart(
        part.name, part.languages, [pair.source for pair in chosen], [pair.target for pair in chosen], prefixes
    )


def make_scorer(model: Network, tokenizers: TokenizerPair, recipe: Recipe, parts: Sequence[ValidationPart]) -> Scorer:
    """Builds a scorer that decodes the sources greedily, which is fast and ranks models well enough."""
    decoding = recipe.decoding.model_dump()
    bundle = Bundle(Path(), recipe.model.family, dict(model.architecture), (), decoding)
    translator = Translator(bundle, tokenizers, TorchEngine(model))

    def scorer() -> tuple[dict[str, float], list[tuple[str, str, str]]]:
        single: dict[str, dict[str, float]] = {}
        samples: list[tuple[str, str, str]] = []
        for part in parts:
            outputs = [one.text for one in part.translated(translator, beam=1)]
            single[part.name] = _scores(part, outputs)
            samples += list(zip(part.sources, part.references, outputs, strict=True))[: max(1, SAMPLES // len(parts))]
        names = next(iter(single.values()))
        scores = {name: sum(own[name] for own in single.values()) / len(single) for name in names}
        if len(single) > 1:
            scores |= {f"{name} {part}": single[part][name] for name in ("bleu", "chrf") for part in single}
        return scores, samples

    return scorer


def _scores(part: ValidationPart, outputs: list[str]) -> dict[str, float]:
    return {
        "bleu": bleu(outputs, part.references, language=part.language).value,
        "chrf": chrf(outputs, part.references, language=part.language).value,
        "empty": sum(not text.strip() for text in outputs) / max(len(outputs), 1),
    }


def calibration(model: Path, parts: Sequence[ValidationPart]) -> dict[str, Any]:
    """Calibrates the confidence of a model on validation text: see decoding/confidence.py."""
    bundle, network, tokenizers = open_model(model)
    translator = Translator(bundle, tokenizers, TorchEngine(network))
    means, qualities = [], []
    for part in parts:
        for one, reference in zip(part.translated(translator), part.references, strict=True):
            if one.log_probs:
                means.append(sum(one.log_probs) / len(one.log_probs))
                qualities.append(chrf([one.text], [reference], language=part.language).value / 100)
    return fit_calibration(means, qualities) if means else {}
