"""`headwise train`: trains a model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from headwise.cli.options import Columns


def train(
    recipe: Annotated[
        str, typer.Argument(metavar="[RECIPE]", help="A TOML file or the name of a shipped recipe; or give the text:")
    ] = "",
    source: Annotated[list[str] | None, typer.Option("--source", help="Source side of parallel text.")] = None,
    target: Annotated[list[str] | None, typer.Option("--target", help="Target side, aligned line by line.")] = None,
    text: Annotated[list[str] | None, typer.Option("--text", help="Text of a language model.")] = None,
    table: Annotated[list[str] | None, typer.Option("--table", help="Texts with labels: CSV, TSV or JSONL.")] = None,
    images: Annotated[list[str] | None, typer.Option("--images", help="A folder with a folder per class.")] = None,
    sounds: Annotated[list[str] | None, typer.Option("--sounds", help="A table of recordings and texts.")] = None,
    columns: Columns = "",
    languages: Annotated[str, typer.Option("--languages", help="Language codes, source then target: en,de.")] = "",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The run's directory. [default: runs/RECIPE]")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", "-s", metavar="A.B=C", help="Change a setting; may be repeated.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume from the newest intact checkpoint; fail if there is none.")
    ] = False,
    print_recipe: Annotated[bool, typer.Option("--print-recipe", help="Print the complete recipe and exit.")] = False,
) -> None:
    """Train a model: check the text, prepare it, train, validate, keep the best.

    Settings that the recipe leaves out are chosen by the size of the text and the speed of this machine, and printed
    with the reason. Without validation text, part of the text is held out; without a budget, the run takes at most 30
    minutes. Ctrl-C saves and stops; the same command resumes the run.

    Examples:

        headwise train --source train.en --target train.de --languages en,de

        headwise train --table reviews.csv --columns review,stars

        headwise train my-recipe.toml

        headwise train my-recipe.toml --output runs/try2 --set training.steps=5000 --set model.dropout=0.3

        headwise train my-recipe.toml --set model.from=runs/base/model        (fine-tune)

        torchrun --nproc-per-node 4 -m headwise train my-recipe.toml        (several GPUs or machines: docs/scaling.md)
    """
    from headwise.config.ranks import Ranks
    from headwise.workflows.recipe_of_files import load_or_make, shown_recipe

    files = {"source": source, "target": target, "text": text, "table": table, "images": images, "sounds": sounds}
    loaded, base, name = load_or_make(
        recipe, files, languages, settings or (), columns=columns, needs_data=not print_recipe
    )
    if print_recipe:
        typer.echo(shown_recipe(loaded, base), nl=False)
        return

    from headwise.cli.live import Live  # torch, from here on
    from headwise.training.signals import exit_code
    from headwise.workflows.train import train as run

    place = output or Path("runs") / name
    if not Ranks.of_environment().leads:  # only rank 0 prints
        raise typer.Exit(exit_code(run(loaded, base, place, resume=resume).reason))
    with Live(sys.stderr) as live:
        finished = run(loaded, base, place, resume=resume, hooks=[live.hook], tell=live.say, progress=live.preparing)
    live.conclude(finished)
    raise typer.Exit(exit_code(finished.reason))
