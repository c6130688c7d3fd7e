"""headwise train."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def train(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="A TOML file, or the name of a shipped recipe.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The run's directory. [default: runs/RECIPE]")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", "-s", metavar="A.B=C", help="Change a setting; may be repeated.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the newest good checkpoint (or fail).")] = False,
    print_recipe: Annotated[bool, typer.Option("--print-recipe", help="Print the resolved recipe and stop.")] = False,
) -> None:
    """Train a model: check the text, prepare it, train, validate, keep the best.

    A run that was stopped goes on where it was when the same command is given again. Ctrl-C saves and stops.

    Examples:

        headwise train my-recipe.toml

        headwise train my-recipe.toml --output runs/try2 --set training.steps=5000 --set model.dropout=0.3

        headwise train my-recipe.toml --set model.from=runs/base/model        (fine-tune)

        torchrun --nproc-per-node 4 -m headwise train my-recipe.toml        (several GPUs or machines: docs/scaling.md)
    """
    from headwise.config.ranks import Ranks
    from headwise.config.recipe import load_recipe
    from headwise.config.recipe import print_recipe as as_toml

    if print_recipe:  # which needs no corpus
        typer.echo(as_toml(load_recipe(recipe, settings or (), data=Path())[0]), nl=False)
        return
    loaded, base = load_recipe(recipe, settings or ())

    from headwise.cli.live import Live  # torch, from here on
    from headwise.training.signals import exit_code
    from headwise.workflows.train import train as run

    place = output or Path("runs") / Path(recipe).stem
    if not Ranks.of_environment().leads:  # rank 0 speaks for all
        raise typer.Exit(exit_code(run(loaded, base, place, resume=resume).reason))
    with Live(sys.stderr) as live:
        finished = run(loaded, base, place, resume=resume, hooks=[live.hook], tell=live.say, progress=live.preparing)
    live.conclude(finished)
    raise typer.Exit(exit_code(finished.reason))
