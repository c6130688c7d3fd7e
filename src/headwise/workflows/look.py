"""Look inside a model at work on one text: its own translation, a forced one, or a language model's reading."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from headwise.bundle.weights import load_model, open_model
from headwise.decoding.torch_engine import TorchEngine
from headwise.decoding.translator import Translator
from headwise.errors import UsageError
from headwise.look.capture import Look, look_at_text, look_at_translation
from headwise.models.lm import LanguageModel
from headwise.models.transformer import Transformer
from headwise.text.tokenizer import EOS, Tokenizer


def look_inside(model: str | Path, text: str, target: str | None = None, *, beam: int | None = None) -> Look:
    """What the model in a directory attends to. Without `target` a translator's own translation is looked at."""
    bundle, module, tokenizers = open_model(model)
    if bundle.family == "transformer":
        return look_at(Translator(bundle, tokenizers, TorchEngine(module)), text, target, beam=beam)
    if bundle.family != "lm":
        raise UsageError(f"{model} is a model of family '{bundle.family}', which cannot be looked into yet")
    if target is not None:
        raise UsageError(f"{model} is a language model: it has no target; leave --target out")
    return look_at_reading(cast("LanguageModel", module), tokenizers.source, text)


def look_at(translator: Translator, text: str, target: str | None = None, *, beam: int | None = None) -> Look:
    """The same for an open translator, with any engine: the translation is its own, the weights are the model's."""
    text = text.strip()
    source_ids = translator.tokenizers.source.encode(text)
    if len(source_ids) >= translator.longest_source:
        raise UsageError(
            f"the text has {len(source_ids)} tokens, but one pass of the model reads fewer than "
            f"{translator.longest_source}; look at one sentence at a time"
        )
    if target is not None:
        target_ids = translator.tokenizers.target.encode(target.strip())
    else:
        target_ids = list(translator.translate([text], beam=beam)[0].ids)
    return look_at_translation(_model(translator), translator.tokenizers, source_ids, target_ids)


def look_at_reading(model: LanguageModel, tokenizer: Tokenizer, text: str) -> Look:
    """A language model reads the text as in training: after the end of whatever came before."""
    ids = [EOS, *tokenizer.encode(text)]
    longest = int(model.architecture["max_length"])
    if len(ids) > longest:
        raise UsageError(f"the text has {len(ids)} tokens, but the model reads at most {longest} at once; shorten it")
    return look_at_text(model, tokenizer, ids)


def _model(translator: Translator) -> Transformer:
    engine: Any = translator.engine
    return cast("Transformer", engine.model if isinstance(engine, TorchEngine) else load_model(translator.bundle))
