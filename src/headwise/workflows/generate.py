"""`headwise generate`: a language model goes on from a prompt."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from headwise.errors import DataError, UsageError
from headwise.workflows.load import Generator, load


def open_generator(model: str | Path) -> Generator:
    loaded = load(model)
    if not isinstance(loaded, Generator):
        raise UsageError(
            f"{model} is a model of family '{loaded.bundle.family}', which does not write on; use headwise translate"
        )
    return loaded


def read_prompt(stream: BinaryIO) -> str:
    """All of a stream; the line break that ends its last line is not part of the prompt."""
    try:
        text = stream.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"not UTF-8 (byte {error.start})", file="standard input") from None
    return text.removesuffix("\n").removesuffix("\r").replace("\r\n", "\n")


def window_notice(generator: Generator, prompt: str, max_tokens: int) -> str | None:
    """What to tell of a text that outgrows the model's context; None where it fits."""
    # Every line costs its tokens and one line break, the first one the break before it.
    length = sum(len(generator.tokenizer.encode(line)) + 1 for line in prompt.split("\n"))
    if length > generator.context:
        return f"the prompt has {length:,} tokens, the model reads {generator.context:,}: only its end is read"
    if length + max_tokens > generator.context:
        return (
            f"prompt and text may have {length + max_tokens:,} tokens, the model sees {generator.context:,} at once: "
            "beyond that it goes on from the newer half"
        )
    return None
