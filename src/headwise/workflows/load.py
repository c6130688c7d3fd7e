"""A model directory to something that can be used: what `headwise.load` is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from headwise.bundle.files import open_bundle
from headwise.decoding.translator import Translator
from headwise.errors import ModelError
from headwise.text.tokenizer import TokenizerPair

if TYPE_CHECKING:
    from headwise.decoding.generator import Generator
    from headwise.models.lm import LanguageModel


def load(path: str | Path, *, device: str = "cpu") -> Translator | Generator:
    """A Translator for a model that translates, a Generator for a language model; both run on torch."""
    from headwise.bundle.weights import load_model  # torch, and only now

    bundle = open_bundle(path)
    tokenizers = TokenizerPair.load(bundle.path)
    if bundle.family == "transformer":
        from headwise.decoding.torch_engine import TorchEngine

        return Translator(bundle, tokenizers, TorchEngine(load_model(bundle, device)))
    if bundle.family == "lm":
        from headwise.decoding.generator import Generator

        return Generator(bundle, tokenizers.target, cast("LanguageModel", load_model(bundle, device)))
    raise ModelError(f"{bundle.path} is a model of family '{bundle.family}', which neither translates nor writes")
