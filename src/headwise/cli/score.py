"""`headwise score`: computes the log-probability of given text, one number per line."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from headwise.cli.options import Model
from headwise.errors import UsageError


def score(
    model: Model = "",
    source: Annotated[str, typer.Option("--source", help="Source side of parallel text.")] = "",
    target: Annotated[str, typer.Option("--target", help="Target side, which is scored.")] = "",
    text: Annotated[str, typer.Option("--text", help="Text for a language model; each line is scored by itself.")] = "",
    source_language: Annotated[
        str, typer.Option("--from", help="Of a model of several directions: that from this language …")
    ] = "",
    target_language: Annotated[str, typer.Option("--to", help="… to this one.")] = "",
    prefix: Annotated[
        str | None, typer.Option("--prefix", help="Text before each source that says what to do, as in training.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line, with every token.")] = False,
) -> None:
    """Score given text: print its log-probability, one number per line.

    The number is the natural logarithm of the probability of the whole line, including its end of sentence. Output line
    n belongs to input line n, also for empty lines.

    Examples:

    - `headwise score --model run/model --source test.en --target test.de`
    - `headwise score --model run/model --source test.en --target test.de --json`
    - `headwise score --model lm/model --text book.txt`
    """
    if not model:
        raise UsageError("no model: give --model DIR, such as RUN/model")
    if bool(text) == bool(source or target) or bool(source) != bool(target):
        raise UsageError("nothing to score: give --source and --target, or for a language model --text")
    from headwise.workflows.score import score as run

    asked: dict[str, Any] = {} if prefix is None else {"prefix": prefix}
    if source_language or target_language:
        asked["languages"] = (source_language, target_language)
    for scores in run(model, {"text": text} if text else {"source": source, "target": target}, **asked):
        for line in scores:
            if not as_json:
                print(f"{line.log_prob:.4f}")
                continue
            record = {"log_prob": line.log_prob, "tokens": line.tokens, "log_probs": line.log_probs}
            print(json.dumps(record, ensure_ascii=False))
