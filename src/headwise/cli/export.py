"""`headwise export`: a model for another engine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from headwise.cli.options import Model
from headwise.errors import UsageError


def export(
    output: Annotated[Path, typer.Argument(help="Directory to write.")],
    model: Model = "",
    to: Annotated[Literal["ctranslate2", "huggingface"], typer.Option("--to", help="The format.")] = "ctranslate2",
    precision: Annotated[
        Literal["int8", "float32"],
        typer.Option("--precision", help="Of ctranslate2: int8 is a quarter of the size, and faster."),
    ] = "int8",
) -> None:
    """Export a model for another engine, or in the layout of the Hugging Face Hub.

    `headwise translate` makes and keeps the export that it needs by itself; this one is for programs of your own.

    Examples:

    - `headwise export --model run/model --to ctranslate2 exported`
    - `headwise export --model run/model --to ctranslate2 --precision float32 exported`
    - `headwise export --model run/model --to huggingface exported`
    """
    if not model:
        raise UsageError("no model: give --model DIR, such as RUN/model")
    from headwise.workflows.export import export_model

    export_model(model, output, to, precision)
    print(f"wrote {output} ({to}, {precision if to == 'ctranslate2' else 'float32'})")
