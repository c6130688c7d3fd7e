"""`headwise generate`: a language model continues a prompt."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

from headwise.bundle.directory import open_bundle
from headwise.decoding.generation import Writer, prompt_ids
from headwise.errors import DataError, UsageError
from headwise.tasks.generate import TASK


def open_generator(model: str | Path, engine: str = "torch", **options: Any) -> Writer:
    """Opens a language model with one of the task's engines."""
    bundle = open_bundle(model)
    if bundle.task_name != TASK.name:
        raise UsageError(f"{model} is a model of the task '{bundle.task_name}'; use headwise {bundle.task_name}")
    return TASK.open(bundle, engine, **options)


def read_prompt(stream: BinaryIO) -> str:
    """Reads a stream to its end; the line break at the end of its last line is not part of the prompt."""
    try:
        text = stream.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"not UTF-8 (byte {error.start})", file="standard input") from None
    return text.removesuffix("\n").removesuffix("\r").replace("\r\n", "\n")


def window_notice(generator: Writer, prompt: str, max_tokens: int) -> str | None:
    """Returns a note if the text exceeds the model's context; None if it fits."""
    length = len(prompt_ids(generator.tokenizer, prompt))
    if generator.context is None:
        return None
    if length > generator.context:
        return (
            f"the prompt has {length:,} tokens, more than the model's context of {generator.context:,}: "
            "only its end is used"
        )
    if length + max_tokens > generator.context:
        return (
            f"prompt and text may have {length + max_tokens:,} tokens, more than the model's context of "
            f"{generator.context:,}: whenever it is full, its older half is dropped"
        )
    return None
