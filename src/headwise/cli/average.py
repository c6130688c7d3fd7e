"""`headwise average`: one model from several checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def average(
    checkpoints: Annotated[list[Path], typer.Argument(metavar="CHECKPOINT…", help="Checkpoints or model directories.")],
    output: Annotated[Path, typer.Argument(metavar="OUT", help="The new model directory.")],
) -> None:
    """Average the weights of several checkpoints into one model.

    Example:

        headwise average runs/my/checkpoints/step-* averaged
    """
    from headwise.workflows.average import average as run

    run(checkpoints, output)
    typer.echo(f"{output}: the mean of {len(checkpoints)} models", err=True)
