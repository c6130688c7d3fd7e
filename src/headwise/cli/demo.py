"""`headwise demo`: everything in one command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from headwise.workflows.demo import Demo
    from headwise.workflows.task_demo import TaskDemo


def demo(
    task: Annotated[
        str, typer.Option("--task", help="What the model is to do: translate, classify, transcribe or generate.")
    ] = "translate",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The directory to write everything to. [default: headwise-demo, or headwise-demo-TASK]",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", "-s", metavar="A.B=C", help="Change a setting of the demo's recipe.")
    ] = None,
) -> None:
    """Run through everything in a few minutes: write a corpus, train, evaluate, translate, look inside.

    A small grammar generates the corpus, English to Chinese; nothing is downloaded. With --task the model classifies
    messages, transcribes melodies or writes sentences, on generated data too. If the demo is interrupted, run the same
    command to resume it.

    Examples:

    - `headwise demo --output my-demo`
    - `headwise demo --task classify`
    """
    from headwise.cli.live import Live
    from headwise.training.signals import exit_code
    from headwise.workflows.demo import Demo
    from headwise.workflows.task_demo import TaskDemo

    with Live(sys.stderr) as live:
        asked: dict[str, Any] = {
            "overrides": settings or (), "hooks": [live.hook], "tell": live.say, "progress": live.preparing
        }  # fmt: skip
        result = _run(task, output, asked)
    if isinstance(result, Demo):
        _print_translations(result)
    elif isinstance(result, TaskDemo):
        _print_answers(result)
    else:
        live.conclude(result)
        raise typer.Exit(exit_code(result.reason))


def _run(task: str, output: Path | None, asked: dict[str, Any]) -> Any:
    from headwise.workflows.demo import demo
    from headwise.workflows.task_demo import task_demo

    if task == "translate":
        return demo(output or Path("headwise-demo"), **asked)
    return task_demo(task, output or Path(f"headwise-demo-{task}"), **asked)


def _print_translations(result: Demo) -> None:
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


def _print_answers(result: TaskDemo) -> None:
    typer.echo("\nScores on held-out data (none of it occurs in training):")
    typer.echo("\n".join(f"  {line}".rstrip() for line in result.scores))
    judged = " (= means right)" if result.shown and result.shown[0].truth is not None else ""
    typer.echo(f"\nWhat the model makes of what it has never seen{judged}:")
    for shown in result.shown:
        mark = "" if shown.truth is None else " =" if shown.answer == shown.truth else f" (right: {shown.truth})"
        typer.echo(f"  {shown.item}\n    {shown.answer}{mark}")
    typer.echo(f"\nWhere everything is:\n  corpus    {result.corpus}\n  model     {result.finished.model}")
    typer.echo("\nWhat to try next:")
    for command in [*result.next_steps, "headwise train --help        (with your own data)"]:
        typer.echo(f"  {command}")
