"""`headwise check`: a report on text before it is used for training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from headwise.cli.options import Columns
from headwise.cli.progress import progress
from headwise.errors import UsageError
from headwise.text.findings import counted

if TYPE_CHECKING:
    from rich.console import Console

    from headwise.config.schema import Recipe
    from headwise.text.findings import Finding, Report, Side

BAR_WIDTH = 40
MOST_LABELS = 15  # shown of a table, and the rarest
COLOURS = {"error": "bold red", "warning": "yellow", "note": "dim"}

Files = list[str] | None


def check(
    recipe: Annotated[str | None, typer.Argument(help="A recipe whose [data] is checked.")] = None,
    source: Annotated[
        Files, typer.Option("--source", help="Source side; may be repeated; '-' is standard input.")
    ] = None,
    target: Annotated[
        Files, typer.Option("--target", help="Target side, aligned line by line with the source.")
    ] = None,
    text: Annotated[
        Files, typer.Option("--text", help="Text of a language model, instead of source and target.")
    ] = None,
    table: Annotated[Files, typer.Option("--table", help="Texts with labels: CSV, TSV or JSONL.")] = None,
    images: Annotated[Files, typer.Option("--images", help="Pictures: a folder per class, a table, idx files.")] = None,
    columns: Columns = "",
    validation_source: Annotated[
        Files, typer.Option("--validation-source", help="Validation text; the training text is searched for it.")
    ] = None,
    validation_target: Annotated[Files, typer.Option("--validation-target")] = None,
    validation_text: Annotated[Files, typer.Option("--validation-text")] = None,
    validation_table: Annotated[Files, typer.Option("--validation-table")] = None,
    validation_images: Annotated[Files, typer.Option("--validation-images")] = None,
    test_source: Annotated[Files, typer.Option("--test-source", help="Test text, checked likewise.")] = None,
    test_target: Annotated[Files, typer.Option("--test-target")] = None,
    test_text: Annotated[Files, typer.Option("--test-text")] = None,
    test_table: Annotated[Files, typer.Option("--test-table")] = None,
    test_images: Annotated[Files, typer.Option("--test-images")] = None,
    languages: Annotated[
        str,
        typer.Option("--languages", help="Language codes, source then target (en,de): checks that the script fits."),
    ] = "",
    format: Annotated[
        Literal["auto", "text", "csv", "tsv", "jsonl"],
        typer.Option("--format", help="Format of the files; auto goes by the file name."),
    ] = "auto",
    fields: Annotated[str, typer.Option("--fields", help="Columns (1,2) or names (en,de) of source and target.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Check text before training: statistics, and problems with their line numbers.

    Exits with 1 if the data cannot be trained on: sides of different length or misaligned, broken encoding, held-out
    text that occurs in the training text.

    Examples:

    - `headwise check --source train.en.gz --target train.de.gz --languages en,de`
    - `headwise check --source pairs.tsv --fields 1,2`
    - `headwise check --text book.txt --json`
    - `headwise check --table reviews.csv --columns text,label`
    - `headwise check --images pictures`
    - `headwise check recipe.toml`
    """
    options: dict[str, Any] = {
        "source": source,
        "target": target,
        "text": text,
        "table": table,
        "images": images,
        "columns": tuple(filter(None, columns.split(","))),
        "validation": {
            "source": validation_source,
            "target": validation_target,
            "text": validation_text,
            "table": validation_table,
            "images": validation_images,
        },
        "test": {
            "source": test_source,
            "target": test_target,
            "text": test_text,
            "table": test_table,
            "images": test_images,
        },
        "languages": tuple(filter(None, languages.split(","))),
        "fields": tuple(filter(None, fields.split(","))),
        "format": format,
    }
    loaded, base = _recipe(recipe, options)
    from headwise.workflows.check import check as examine

    with progress("lines") as advance:
        report = examine(loaded, base, advance)
    if as_json:
        print(json.dumps(report.as_dict(), ensure_ascii=False, indent=2))
    else:
        print_report(report)
    raise typer.Exit(1 if report.unusable else 0)


def _recipe(recipe: str | None, options: dict[str, Any]) -> tuple[Recipe, Path]:
    from headwise.config.recipe import build_recipe, load_recipe
    from headwise.workflows.recipe_of_files import values_of

    given = _without_empty(options)
    if recipe is not None:
        if given != {"format": "auto"}:
            raise UsageError("give either a recipe or options that name files, not both")
        return load_recipe(recipe)
    return build_recipe(values_of(given), origin="the options"), Path()


def _without_empty(values: dict[str, Any]) -> dict[str, Any]:
    nested = {key: _without_empty(value) if isinstance(value, dict) else value for key, value in values.items()}
    return {key: value for key, value in nested.items() if value}


def print_report(report: Report) -> None:
    """Prints tables, histograms and findings; without colours and line wrapping if the output is not a terminal."""
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    _print_sides(console, report)
    for side in report.sides:
        _print_histogram(console, side)
    if report.labels:
        _print_labels(console, report.labels, report.unit)
    for finding in report.findings:
        _print_finding(console, finding)
    dropped = ", ".join(f"{name} {count:,}" for name, count in report.counts.dropped.items()) or "none"
    console.print(
        f"\n{counted(report.counts.lines, report.unit)} = {report.counts.kept:,} kept + dropped by filters: {dropped}"
    )
    verdict, style = _verdict(report)
    console.print(f"verdict: {verdict}", style=style)


def _verdict(report: Report) -> tuple[str, str]:
    """What to do with the data, and the colour of that."""
    warnings = [finding.name for finding in report.findings if finding.severity == "warning"]
    if report.unusable:
        return "this data cannot be trained on", "bold red"
    if warnings:
        return f"it can be trained on, but read the warnings first: {', '.join(warnings)}", "yellow"
    return "good to train on", "green"


def _print_sides(console: Console, report: Report) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("side")
    for column in ("lines", "words", "characters", "median", "longest"):
        table.add_column(column, justify="right")
    for side in report.sides:
        numbers = (side.lines, side.words, side.characters, side.quantile(0.5), side.longest)
        table.add_row(side.name, *(f"{number:,}" for number in numbers))
    if report.sides:
        console.print(table)
    for name, lines in report.held_out.items():
        console.print(f"{name}: {lines:,} {report.unit}")
    if report.correlation is not None:
        console.print(f"correlation of the sides' lengths: {report.correlation:.2f}")


def _print_histogram(console: Console, side: Side) -> None:
    console.print(f"\n{side.name}: words per line")
    bars = side.histogram()
    most = max(lines for _, lines in bars) or 1
    for label, lines in bars:
        bar = "█" * (BAR_WIDTH * lines // most) or ("▏" if lines else "")
        console.print(f"{label:>9} {bar:<{BAR_WIDTH}} {lines:,}".rstrip(), markup=False)


def _print_labels(console: Console, labels: dict[str, int], unit: str) -> None:
    console.print(f"\n{counted(len(labels), 'labels')}: {unit} per label")
    most, width = max(labels.values()), min(40, max(map(len, labels)))
    for number, (label, rows) in enumerate(labels.items()):
        if number == MOST_LABELS < len(labels) - 1:
            console.print(f"… and {len(labels) - number - 1:,} more")
        if number < MOST_LABELS or number == len(labels) - 1:
            bar = "█" * (BAR_WIDTH * rows // most) or "▏"
            console.print(f"{shown(label)[:width]:>{width}} {bar:<{BAR_WIDTH}} {rows:,}", markup=False)


def _print_finding(console: Console, finding: Finding) -> None:
    from rich.text import Text

    headline = Text.assemble(
        "\n", (finding.severity, COLOURS[finding.severity]), f": {finding.name}: {finding.message}"
    )
    console.print(headline)
    console.print(f"  → {finding.remedy}", markup=False)
    for example in finding.examples:
        console.print(f"  {example.place}: {shown(example.text)}", markup=False, style="dim")


def shown(text: str) -> str:
    """Escapes the characters that a terminal might interpret."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
