"""`headwise models`: lists the models that come with Headwise."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headwise.workflows.models import ShippedModel


def models(
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List the models that come with Headwise, by task.

    They are small, each made for one kind of text, and need no download. `headwise info NAME` shows more, and the name
    works wherever a model directory is expected. Models that you train are not listed: they are in their run directory.

    Examples:

    - `headwise models`
    - `headwise info multi30k-en-de`
    - `headwise translate --to de "A man is riding a bicycle."`
    """
    from headwise.workflows.models import HOW_TO_GET_ONE, shipped_models

    found = shipped_models()
    if as_json:
        typer.echo(json.dumps([{**asdict(m), "path": str(m.path)} for m in found], ensure_ascii=False, indent=2))
        return
    if not found:
        typer.echo(f"this installation came without models; {HOW_TO_GET_ONE}", err=True)
        return
    rows = [("task", "name", "languages", "size", "score", "good for"), *map(_row, found)]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    for row in rows:
        typer.echo("  ".join([*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[5]]))
    typer.echo("\ntrained on (NOTICE has the full attribution):")
    for model in found:
        typer.echo(f"  {model.name}: {model.trained_on}. Licence: {model.licence}")


def _row(model: ShippedModel) -> tuple[str, ...]:
    score = "–" if model.score is None else f"{model.score.metric} {model.score.value:.1f}"
    return model.task, model.name, model.languages or "–", f"{model.size / 1e6:.1f} MB", score, model.good_for
