"""`headwise classify`: a label for each text or picture; output line n belongs to input line n."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from headwise.cli.options import Engine, Model, Precision
from headwise.cli.translate import line_progress, one_line, output, warn
from headwise.errors import UsageError

if TYPE_CHECKING:
    from headwise.tasks.classifier import Classification


def classify(
    given: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TEXT | FILE]...", help="Texts, or pictures by their file names. [default: stdin]"),
    ] = None,
    model: Model = "",
    input_file: Annotated[
        str, typer.Option("--input", "-i", help="File with one text (or the name of a picture) per line.")
    ] = "-",
    output_file: Annotated[
        str, typer.Option("--output", "-o", help="File to write; it appears when everything is classified.")
    ] = "-",
    top: Annotated[int, typer.Option("--top", min=1, help="Labels per line, likeliest first.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line, with all probabilities.")] = False,
    engine: Engine = "auto",
    precision: Precision = "int8",
) -> None:
    """Classify texts or pictures: print label and probability, separated by a tab.

    Empty lines stay empty. A model of pairs reads two texts per line, separated by a tab. Of a text that is too long
    for the model its beginning is read.

    Examples:

    - `headwise classify --model runs/banking77/model "My card has not arrived yet."`
    - `headwise classify --model runs/reviews/model --input reviews.txt.gz --output labels.tsv`
    - `cat mail.txt | headwise classify --model runs/mail/model --top 3 --json`
    - `headwise classify --model runs/digits/model 1.png 2.png`
    """
    if not model:
        raise UsageError("no model: give --model DIR, such as RUN/model")
    if given and input_file != "-":
        raise UsageError("give either texts or --input, not both")
    from headwise.workflows.classify import classify_lines, open_classifier
    from headwise.workflows.translate import input_chunks

    classifier = open_classifier(model, engine, precision=precision)
    if not given and input_file == "-" and sys.stdin.isatty():
        print("Type a line and press Enter; end with Ctrl-D.", file=sys.stderr)
    chunks: Iterable[list[str]] = [list(given)] if given else input_chunks(input_file, warn)
    with output(output_file) as stream, line_progress(input_file) as advance:
        for lines, answers in classify_lines(classifier, chunks):
            for line, answer in zip(lines, answers, strict=True):
                stream.write((_as_json(line, answer, top) if as_json else _as_text(answer, top)) + "\n")
            stream.flush()
            advance(len(lines))


def _as_text(answer: Classification | None, top: int) -> str:
    if answer is None:
        return ""
    best = list(answer.probabilities.items())[:top]
    return "\t".join(f"{one_line(label)}\t{probability:.4f}" for label, probability in best)


def _as_json(line: str, answer: Classification | None, top: int) -> str:
    if answer is None:
        return json.dumps({"input": line, "label": None}, ensure_ascii=False)
    kept = list(answer.probabilities.items())[: top if top > 1 else None]
    return json.dumps(
        {
            "input": line, "label": answer.label, "probability": round(answer.probability, 6),
            "probabilities": {label: round(probability, 6) for label, probability in kept},
        },
        ensure_ascii=False,
    )  # fmt: skip
