"""`headwise models`: the models that came with Headwise."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headwise.workflows.models import ShippedModel


def models(
    as_json: Annotated[bool, typer.Option("--json", help="The same as JSON, for programs.")] = False,
) -> None:
    """List the models that came with Headwise.

    They are small, made for one kind of text each, and need no download. `headwise info NAME` tells more, and wherever
    a model directory is asked for its name will do. A model of your own is not listed: it is where you trained it.

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
        typer.echo(f"no model came with this installation; {HOW_TO_GET_ONE}", err=True)
        return
    rows = [("name", "languages", "size", "BLEU", "good for"), *map(_row, found)]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        typer.echo("  ".join([*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[4]]))
    typer.echo("\ntrained on (NOTICE has the full attribution):")
    for model in found:
        typer.echo(f"  {model.name}: {model.trained_on}. Licence: {model.licence}")


def _row(model: ShippedModel) -> tuple[str, ...]:
    bleu = "–" if model.bleu is None else f"{model.bleu.value:.1f}"
    return model.name, model.languages, f"{model.size / 1e6:.1f} MB", bleu, model.good_for
