"""A model directory to something that can be used: what `headwise.load` is."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from headwise.bundle.weights import open_model
from headwise.decoding import generator, translator
from headwise.decoding.torch_engine import TorchEngine
from headwise.errors import ModelError
from headwise.look.capture import Look
from headwise.models.lm import LanguageModel
from headwise.workflows.look import look_at, look_at_reading


class Translator(translator.Translator):
    """Translates, and shows what every head attended to while it did."""

    def look(self, text: str, target: str | None = None, *, beam: int | None = None) -> Look:
        """Attention at work on one text; without `target` on the translator's own translation."""
        return look_at(self, text, target, beam=beam)


class Generator(generator.Generator):
    """Writes on, and shows what every head attends to when it reads."""

    def look(self, text: str) -> Look:
        return look_at_reading(self.model, self.tokenizer, text)


def load(path: str | Path, *, device: str = "cpu") -> Translator | Generator:
    """A Translator for a model that translates, a Generator for a language model; both run on torch."""
    bundle, model, tokenizers = open_model(path, device)
    if bundle.family == "transformer":
        return Translator(bundle, tokenizers, TorchEngine(model, frozen=True))
    if bundle.family == "lm":
        return Generator(bundle, tokenizers.target, cast("LanguageModel", model))
    raise ModelError(f"{bundle.path} is a model of family '{bundle.family}', which neither translates nor writes")
