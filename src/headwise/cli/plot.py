"""`headwise plot`: draws the curves of training runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def plot(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Run directories; several are drawn together.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="A .png or .svg file.")] = Path("curves.png"),
) -> None:
    """Draw the curves of training runs: loss, perplexity, BLEU and chrF, learning rate, speed.

    A run that is still in progress can be drawn too.

    Examples:

    - `headwise plot runs/my-recipe`
    - `headwise plot runs/try1 runs/try2 --output both.svg`
    """
    from headwise.workflows.plot import plot as draw

    draw(runs, output)
    typer.echo(f"wrote {output}", err=True)
