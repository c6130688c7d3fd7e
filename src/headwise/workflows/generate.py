"""`headwise generate`: a language model goes on from a prompt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from headwise.bundle.directory import Bundle, open_bundle
from headwise.decoding.generation import prompt_ids
from headwise.errors import DataError, UsageError
from headwise.text.tokenizer import TokenizerPair

if TYPE_CHECKING:
    from headwise.decoding.ctranslate2_generator import CTranslate2Generator
    from headwise.workflows.load import Generator

ENGINES = ("torch", "ctranslate2")


def open_generator(model: str | Path) -> Generator:
    """A language model on the torch engine, which does everything."""
    _open(model)
    from headwise.workflows.load import Generator, load

    loaded = load(model)
    assert isinstance(loaded, Generator)
    return loaded


def open_fast_generator(
    model: str | Path, precision: str = "int8", *, token_scores: bool = True
) -> CTranslate2Generator:
    """A language model on the ctranslate2 engine; what it needs is made on first use."""
    bundle = _open(model)
    from headwise.decoding.ctranslate2_generator import CTranslate2Generator
    from headwise.workflows.export import kept_export

    tokenizers = TokenizerPair.load(bundle.path)
    directory = kept_export(bundle, tokenizers, precision)
    return CTranslate2Generator(bundle, tokenizers.target, directory, token_scores=token_scores)


def _open(model: str | Path) -> Bundle:
    bundle = open_bundle(model)
    if bundle.family != "lm":
        raise UsageError(
            f"{model} is a model of family '{bundle.family}', which does not write on; use headwise translate"
        )
    return bundle


def read_prompt(stream: BinaryIO) -> str:
    """All of a stream; the line break that ends its last line is not part of the prompt."""
    try:
        text = stream.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"not UTF-8 (byte {error.start})", file="standard input") from None
    return text.removesuffix("\n").removesuffix("\r").replace("\r\n", "\n")


def window_notice(generator: Generator | CTranslate2Generator, prompt: str, max_tokens: int) -> str | None:
    """What to tell of a text that outgrows the model's context; None where it fits."""
    length = len(prompt_ids(generator.tokenizer, prompt))
    if length > generator.context:
        return f"the prompt has {length:,} tokens, the model reads {generator.context:,}: only its end is read"
    if length + max_tokens > generator.context:
        return (
            f"prompt and text may have {length + max_tokens:,} tokens, the model sees {generator.context:,} at once: "
            "beyond that it goes on from the newer half"
        )
    return None
