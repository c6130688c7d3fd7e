"""`headwise init`: a commented recipe for your own files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headwise.cli.options import Columns
from headwise.errors import UsageError


def init(
    output: Annotated[Path, typer.Argument(metavar="RECIPE", help="The file to write.")] = Path("recipe.toml"),
    source: Annotated[list[str] | None, typer.Option("--source", help="Source side of parallel text.")] = None,
    target: Annotated[list[str] | None, typer.Option("--target", help="Target side, aligned line by line.")] = None,
    text: Annotated[list[str] | None, typer.Option("--text", help="Text of a language model.")] = None,
    table: Annotated[list[str] | None, typer.Option("--table", help="Texts with labels: CSV, TSV or JSONL.")] = None,
    images: Annotated[list[str] | None, typer.Option("--images", help="A folder with a folder per class.")] = None,
    sounds: Annotated[list[str] | None, typer.Option("--sounds", help="A table of recordings and texts.")] = None,
    columns: Columns = "",
    languages: Annotated[str, typer.Option("--languages", help="Language codes, source then target: en,de.")] = "",
) -> None:
    """Write the recipe that training would use for these files, with the reason of each choice.

    Examples:

    - `headwise init my-translator.toml --source train.en --target train.de --languages en,de`
    - `headwise init my-writer.toml --text book.txt`
    - `headwise init my-classifier.toml --table reviews.csv --columns review,stars`
    """
    if output.exists():
        raise UsageError(f"{output} exists already; choose another name")
    from headwise.files import write_whole
    from headwise.workflows.recipe_of_files import commented_recipe

    files = {"source": source, "target": target, "text": text, "table": table, "images": images, "sounds": sounds}
    write_whole(output, commented_recipe(files, languages, output.parent, columns).encode())
    typer.echo(f"wrote {output}; train it with: headwise train {output}", err=True)
