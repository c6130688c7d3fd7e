"""Computes BLEU and chrF during training, with the decoder and the metrics that `evaluate` uses."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from headwise.bundle.directory import Bundle
from headwise.bundle.weights import open_model
from headwise.config.schema import Recipe
from headwise.data.split import part_of_pairs
from headwise.decoding.confidence import fit_calibration
from headwise.decoding.torch_engine import TorchEngine
from headwise.decoding.translator import Translator
from headwise.evaluation.metrics import bleu, chrf
from headwise.models.interface import Network
from headwise.text.corpus import Pair, expand_paths, read_pairs
from headwise.text.tokenizer import TokenizerPair
from headwise.training.hooks import Scorer

SAMPLES = 2


def validation_texts(recipe: Recipe) -> tuple[list[str], list[str]] | None:
    """Reads the first sentences of the validation text, as many as the recipe decodes."""
    data = recipe.data
    texts = data.validation if data.validation.source else data
    if texts is data and not data.split:
        return None
    sides = (expand_paths(side, None) for side in (texts.source, texts.target))
    pairs: Iterable[Pair] = read_pairs(*sides, format=data.format, fields=data.fields)
    if texts is data:
        pairs = (pair for pair in pairs if part_of_pairs([pair.source], data.split) == ["validation"])
    chosen = list(islice(pairs, recipe.training.validation_sentences))
    return [pair.source for pair in chosen], [pair.target for pair in chosen]


def make_scorer(
    model: Network, tokenizers: TokenizerPair, recipe: Recipe, sources: list[str], references: list[str]
) -> Scorer:
    """Builds a scorer that decodes the sources greedily, which is fast and ranks models well enough."""
    decoding = recipe.decoding.model_dump()
    bundle = Bundle(Path(), recipe.model.family, dict(model.architecture), recipe.data.languages, decoding)
    translator = Translator(bundle, tokenizers, TorchEngine(model))
    language = recipe.data.languages[-1] if recipe.data.languages else ""

    def scorer() -> tuple[dict[str, float], list[tuple[str, str, str]]]:
        outputs = [t.text for t in translator.translate(sources, beam=1)]
        scores = {
            "bleu": bleu(outputs, references, language=language).value,
            "chrf": chrf(outputs, references, language=language).value,
            "empty": sum(not text.strip() for text in outputs) / max(len(outputs), 1),
        }
        return scores, list(zip(sources, references, outputs, strict=True))[:SAMPLES]

    return scorer


def calibration(model: Path, sources: list[str], references: list[str]) -> dict[str, Any]:
    """Calibrates the confidence of a model on validation text: see decoding/confidence.py."""
    bundle, network, tokenizers = open_model(model)
    translator = Translator(bundle, tokenizers, TorchEngine(network))
    translations = translator.translate(sources)
    language = bundle.languages[-1] if bundle.languages else ""
    rows = [(t, r) for t, r in zip(translations, references, strict=True) if t.log_probs]
    means = [sum(t.log_probs) / len(t.log_probs) for t, _ in rows]
    qualities = [chrf([t.text], [r], language=language).value / 100 for t, r in rows]
    return fit_calibration(means, qualities) if rows else {}
