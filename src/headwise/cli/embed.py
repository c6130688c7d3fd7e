"""`headwise embed`: vectors of texts, and the texts that are most similar to a query."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from headwise.cli.options import Engine, Model, Precision
from headwise.cli.progress import progress
from headwise.cli.translate import one_line, output, warn
from headwise.errors import UsageError


def embed(
    text: Annotated[list[str] | None, typer.Argument(help="Texts. [default: standard input, line by line]")] = None,
    model: Model = "",
    input_file: Annotated[str, typer.Option("--input", "-i", help="File with one text per line.")] = "-",
    output_file: Annotated[
        str, typer.Option("--output", "-o", help="File to write: .npy, or .jsonl. [default: JSON lines to stdout]")
    ] = "-",
    similar: Annotated[str, typer.Option("--similar", help="Print the texts that are most similar to this one.")] = "",
    top: Annotated[int, typer.Option("--top", min=1, help="How many, with --similar.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="With --similar: one JSON object per text.")] = False,
    engine: Engine = "auto",
    precision: Precision = "int8",
) -> None:
    """Turn texts into vectors of length 1, whose dot products are cosines; or search texts by meaning.

    Vector n belongs to line n. With --similar, each line is cosine, line number and text, separated by tabs.

    Examples:

    - `headwise embed --model minilm --input questions.txt --output vectors.npy`
    - `headwise embed --model minilm --input questions.txt --similar "How do I pay?" --top 3`
    - `headwise embed --model minilm "a dog" "a cat"`
    """
    if not model:
        raise UsageError("no model: give --model DIR, such as RUN/model")
    if text and input_file != "-":
        raise UsageError("give either texts or --input, not both")
    if similar and output_file != "-":
        raise UsageError("--similar prints texts, --output is a file of vectors: give one of them")
    from headwise.workflows.embed import check_output, embed_in_chunks, json_line, open_embedder, write_vectors
    from headwise.workflows.translate import input_chunks

    if output_file != "-":
        check_output(output_file)
    embedder = open_embedder(model, engine, precision=precision)
    if not text and input_file == "-" and sys.stdin.isatty():
        print("Type texts, one per line; end with Ctrl-D.", file=sys.stderr)
    lines = list(text) if text else [line for chunk in input_chunks(input_file, warn) for line in chunk]
    if similar:
        with output("-") as stream:
            for found in embedder.similar(similar, lines, top):
                record = {"similarity": round(found.similarity, 6), "line": found.place + 1, "text": found.text}
                plain = f"{found.similarity:.4f}\t{found.place + 1}\t{one_line(found.text)}"
                stream.write((json.dumps(record, ensure_ascii=False) if as_json else plain) + "\n")
        return
    if output_file == "-":
        with output("-") as stream:
            start = 0
            for part in embed_in_chunks(embedder, lines):
                stream.writelines(f"{json_line(lines[start + place], row)}\n" for place, row in enumerate(part))
                start += len(part)
        return
    import numpy as np

    with progress("lines", len(lines)) as advance:
        parts = []
        for part in embed_in_chunks(embedder, lines):
            parts.append(part)
            advance(len(part))
    write_vectors(output_file, lines, np.concatenate(parts) if parts else embedder.embed([]))
