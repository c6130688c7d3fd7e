"""`headwise fill`: what belongs into the gaps of a text."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from headwise.cli.options import Engine, Model, Precision
from headwise.cli.translate import one_line, output, warn
from headwise.errors import UsageError

if TYPE_CHECKING:
    from headwise.tasks.gaps.interface import Filled


def fill(
    text: Annotated[
        list[str] | None, typer.Argument(help="Text with [MASK] where a word is missing. [default: standard input]")
    ] = None,
    model: Model = "",
    input_file: Annotated[str, typer.Option("--input", "-i", help="File to fill line by line.")] = "-",
    output_file: Annotated[str, typer.Option("--output", "-o", help="File to write.")] = "-",
    top: Annotated[
        int, typer.Option("--top", min=1, help="Candidates per gap; with 1 the filled text alone is printed.")
    ] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per text, with all candidates.")] = False,
    engine: Engine = "auto",
    precision: Precision = "int8",
) -> None:
    """Fill the gaps of a text: print probability, candidate and filled text for each, separated by tabs.

    Several gaps of a text are filled independently of each other. Lines without a gap are copied.

    Examples:

    - `headwise fill --model runs/wikitext2-bert/model "The capital of France is [MASK]."`
    - `headwise fill --model runs/wikitext2-bert/model --top 1 --input lines.txt --output filled.txt`
    """
    if not model:
        raise UsageError("no model: give --model DIR, such as RUN/model")
    if text and input_file != "-":
        raise UsageError("give either text or --input, not both")
    from headwise.text.gaps import count_gaps
    from headwise.workflows.fill import open_filler
    from headwise.workflows.translate import input_chunks

    filler = open_filler(model, engine, precision=precision)
    if not text and input_file == "-" and sys.stdin.isatty():
        print("Type a line with [MASK] and press Enter; end with Ctrl-D.", file=sys.stderr)
    if text and not all(map(count_gaps, text)):
        raise UsageError("there is no gap in the text; write [MASK] where a word is missing")
    chunks: Iterable[list[str]] = [list(text)] if text else input_chunks(input_file, warn)
    with output(output_file) as stream:
        for lines in chunks:
            gapped = [line for line in lines if count_gaps(line)]
            found = iter(filler.fill(gapped, top) if gapped else ())
            for line in lines:
                filled = next(found) if count_gaps(line) else None
                stream.write((_as_json(line, filled) if as_json else _as_text(line, filled, top)) + "\n")
            stream.flush()


def _as_text(line: str, filled: Filled | None, top: int) -> str:
    if filled is None or top == 1:
        return line if filled is None else one_line(filled.text)
    rows = [
        f"{candidate.probability:.4f}\t{one_line(candidate.text)}\t{one_line(candidate.filled)}"
        for gap in filled.gaps
        for candidate in gap
    ]
    return "\n".join(rows)


def _as_json(line: str, filled: Filled | None) -> str:
    gaps = [] if filled is None else [[asdict(candidate) for candidate in gap] for gap in filled.gaps]
    record = {"input": line, "text": line if filled is None else filled.text, "gaps": gaps}
    return json.dumps(record, ensure_ascii=False)
