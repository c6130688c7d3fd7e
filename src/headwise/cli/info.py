"""`headwise info`: describes a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headwise.workflows.info import ModelInfo
    from headwise.workflows.models import ShippedScore

MOST_LABELS = 20  # shown; --json has all


def info(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="Model directory, such as RUN/model, a run, or a shipped model's name."),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Describe a model: architecture, languages, tokenizers, labels, scores, files.

    Compares every file with its hash, so this also detects a damaged copy.

    Examples:

    - `headwise info runs/my-recipe/model`
    - `headwise info runs/my-recipe/model --json`
    - `headwise info multi30k-en-de`
    """
    from headwise.workflows.info import model_info

    found = model_info(model)
    if as_json:
        typer.echo(json.dumps(found.as_dict(), ensure_ascii=False, indent=2))
        return
    for name, value in _lines(found):
        typer.echo(f"{name:<14}{value}".rstrip())


def _lines(found: ModelInfo) -> list[tuple[str, str]]:
    lines = [("model", found.path), ("family", f"{found.family} ({found.family_about})"), ("task", found.task)]
    lines += [(name.replace("_", " "), text) for name, text in found.about.items()]
    if found.languages:
        lines.append(("languages", " → ".join(found.languages)))
    lines += _listed("prefixes", list(map(repr, found.prefixes)), per_line=2)
    stored = "" if found.precision == "float32" else f", stored as {found.precision}"
    lines.append(("parameters", f"{found.parameters:,}{stored}"))
    sizes = {name: value for name, value in found.architecture.items() if value is not None}
    lines += _listed("architecture", [f"{name} {value}" for name, value in sizes.items()], per_line=4)
    for tokenizer in found.tokenizers:
        side = "" if tokenizer.side == "both" else f", {tokenizer.side} side"
        text = f"{tokenizer.kind}, {tokenizer.size:,} tokens, normalisation {tokenizer.normalisation}{side}"
        lines.append(("tokenizer", text))
    if found.decoding:
        lines += _listed("decoding", [f"{name} {value}" for name, value in found.decoding.items()], per_line=4)
    lines += _listed("labels", _shown_labels(found.labels), per_line=4)
    if found.temperature is not None:
        lines.append(("temperature", f"{found.temperature:g}, which the logits are divided by"))
    if found.scores:
        lines += _listed("validation", [f"{name} {value:.4g}" for name, value in found.scores.items()], per_line=6)
    lines += _listed("test", [_score(score) for score in found.tests], per_line=1)
    if found.sentences is not None and "trained_on" not in found.about:
        lines.append(("trained on", f"{found.sentences:,} {found.unit}"))
    if found.written_by:
        lines.append(("written by", f"headwise {found.written_by}"))
    lines += _listed("files", [f"{size:>13,} bytes  {name}" for name, size in found.files.items()], per_line=1)
    return lines


def _shown_labels(labels: tuple[str, ...]) -> list[str]:
    more = len(labels) - MOST_LABELS
    return [*map(repr, labels[:MOST_LABELS]), *([f"… and {more:,} more"] if more > 0 else [])]


def _score(score: ShippedScore) -> str:
    return f"{score.test} ({score.engine}): {score.metric} {score.value:.2f}  {score.signature}"


def _listed(name: str, values: list[str], per_line: int) -> list[tuple[str, str]]:
    rows = [", ".join(values[start : start + per_line]) for start in range(0, len(values), per_line)]
    return [(name if number == 0 else "", row) for number, row in enumerate(rows)]
