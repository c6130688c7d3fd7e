"""Options that several commands have, so that they read alike everywhere."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

Model = Annotated[
    str, typer.Option("--model", "-m", help="Model directory, such as RUN/model, or a name that headwise models lists.")
]
Engine = Annotated[
    Literal["auto", "torch", "ctranslate2"],
    typer.Option("--engine", help="auto: ctranslate2 (fast on CPUs) where it does what is asked."),
]
Columns = Annotated[
    str,
    typer.Option(
        "--columns", help="Columns of the table, names or numbers: what is read, then the label: review,stars."
    ),
]
Precision = Annotated[
    Literal["int8", "float32"],
    typer.Option("--precision", help="Of the ctranslate2 engine: int8 is faster, float32 matches torch."),
]
