"""`headwise import`: a published model becomes a model directory. (`import` is a word of Python, hence the name.)"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def import_(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A directory in the layout of the Hugging Face Hub.")],
    output: Annotated[Path, typer.Argument(metavar="OUT", help="The new model directory.")],
) -> None:
    """Import a published model, to use everything else on it.

    Only safetensors, JSON and text files are read; a pickled file is never opened.

    Examples:

    - `headwise import gpt2 models/gpt2`
    """
    from headwise.workflows.import_model import import_model

    made = import_model(source, output)
    licence = made.licence or "not stated"
    typer.echo(
        f"{made.path}: {made.parameters:,} parameters, family {made.family}, task {made.task}, licence {licence}",
        err=True,
    )
