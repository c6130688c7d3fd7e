"""`headwise demo`: everything in one command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="The directory to write everything to.")] = Path(
        "headwise-demo"
    ),
    settings: Annotated[
        list[str] | None, typer.Option("--set", "-s", metavar="A.B=C", help="Change a setting of the demo's recipe.")
    ] = None,
) -> None:
    """Run through everything in a few minutes: write a corpus, train, evaluate, translate, look inside.

    A small grammar generates the corpus, English to Chinese; nothing is downloaded. If the demo is interrupted, run the
    same command to resume it.

    Example:

    - `headwise demo --output my-demo`
    """
    from headwise.cli.live import Live
    from headwise.training.signals import exit_code
    from headwise.workflows.demo import Demo
    from headwise.workflows.demo import demo as run

    with Live(sys.stderr) as live:
        result = run(output, overrides=settings or (), hooks=[live.hook], tell=live.say, progress=live.preparing)
    if not isinstance(result, Demo):
        live.conclude(result)
        raise typer.Exit(exit_code(result.reason))
    typer.echo("\nScores on held-out sentences (combinations that never occur in training):")
    for score in result.scores:
        typer.echo(f"  {score}")
    typer.echo("\nSentences that the model has never seen (= means the same as the grammar's translation):")
    for shown in result.shown:
        mark = "=" if shown.translation == shown.pair.chinese else f"(grammar: {shown.pair.chinese})"
        typer.echo(f"  {shown.pair.english}\n    {shown.translation} {mark}")
    model, example = result.finished.model, result.shown[0].pair.english
    typer.echo(f"\nWhere everything is:\n  corpus    {result.corpus}\n  model     {model}")
    typer.echo("\n".join(f"  picture   {path}" for path in result.pictures))
    typer.echo(
        f'\nWhat to try next:\n  headwise translate --model {model} "{example}"\n'
        f'  headwise look --model {model} "{example}" --output attention.html\n'
        f"  headwise train --help        (with your own text)"
    )
