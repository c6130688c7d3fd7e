"""`headwise import`: a published model becomes a model directory. (`import` is a word of Python, hence the name.)"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def import_(
    source: Annotated[
        str,
        typer.Argument(metavar="SOURCE", help="Directory of a published model, or its name on the Hugging Face Hub."),
    ],
    output: Annotated[Path, typer.Argument(metavar="OUT", help="The new model directory.")],
    revision: Annotated[str | None, typer.Option(help="Of the Hub: a commit, a tag or a branch.")] = None,
    pairs: Annotated[
        bool,
        typer.Option("--pairs", help="The classifier was trained on pairs of texts, such as a question and an answer."),
    ] = False,
) -> None:
    """Import a published model, to use everything else on it.

    A directory is in the layout of the Hub, of CTranslate2, Argos or Marian. A pickled file is never opened.

    Examples:

    - `headwise import downloads/opus-mt-en-de models/en-de`
    - `headwise import Helsinki-NLP/opus-mt-en-de models/en-de`
    - `headwise import textattack/bert-base-uncased-MNLI models/mnli --pairs`
    """
    from headwise.workflows.import_model import import_model

    made = import_model(source, output, revision, pairs=pairs)
    licence = made.licence or "not stated"
    typer.echo(
        f"{made.path}: {made.parameters:,} parameters, family {made.family}, task {made.task}, licence {licence}",
        err=True,
    )
