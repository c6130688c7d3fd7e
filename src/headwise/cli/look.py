"""`headwise look`: shows what every head attends to, as a page or a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from headwise.cli.options import Model
from headwise.errors import UsageError

What = Literal[
    "attention", "encoder", "decoder", "cross", "causal", "bias", "alignment", "positions", "mask", "pattern",
    "saliency",
]  # fmt: skip


def look(
    text: Annotated[str, typer.Argument(help="The sentence to look at, or the file of a picture or sound.")],
    model: Model = "",
    source_language: Annotated[
        str, typer.Option("--from", help="Instead of --model: use a shipped model that translates from this language …")
    ] = "",
    target_language: Annotated[
        str, typer.Option("--to", help="… to this one; either is enough if only one model fits.")
    ] = "",
    prefix: Annotated[
        str | None, typer.Option("--prefix", help="Text before the sentence that says what to do, as in training.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="An interactive .html page, or a .svg or .png picture.")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", help="Look at this translation or label instead of the model's own.")
    ] = None,
    what: Annotated[
        What,
        typer.Option(
            "--what",
            help="attention is encoder, decoder and cross together (causal for a language model); alignment links "
            "words; pattern is which pairs of tokens meet in each layer and head; saliency is gradient × input.",
        ),
    ] = "attention",
    between: Annotated[
        tuple[str, str],
        typer.Option("--between", help="Rank all heads by the attention that one word pays to another: it animal."),
    ] = ("", ""),
    layer: Annotated[int | None, typer.Option("--layer", help="Only this layer, counted from 1.")] = None,
    head: Annotated[int | None, typer.Option("--head", help="Only this head, counted from 1.")] = None,
    merge: Annotated[bool, typer.Option("--merge", help="Merge the pieces of each word.")] = False,
    beam: Annotated[
        int | None, typer.Option("--beam", help="Beam size of the model's own translation; 1 is greedy.")
    ] = None,
) -> None:
    """Look inside a model: attention, alignment, positions, masks, saliency.

    A page shows every layer and head, what a token attends to, and decoding step by step, in one file that works
    offline. A picture shows the chosen layer and head, or all of them.

    Examples:

    - `headwise look --to de "A man is riding a bicycle." --output attention.html`
    - `headwise look --model RUN/model "The dog sleeps." --output attention.html`
    - `headwise look --model RUN/model "The dog sleeps." --what cross --layer 3 --head 2 --output cross.png`
    - `headwise look --model RUN/model "The dog sleeps." --target "Der Hund schläft." --output forced.html`
    - `headwise look --model RUN/model "The dog sleeps." --what alignment` prints links in Moses format (0-0 1-1)
    - `headwise look --model minilm "The animal slept because it was tired." --between it animal`
    - `headwise look --model RUN/model photo.png --output heads.html` draws every head's map over the picture
    - `headwise look --model tiny.en talk.wav --output talk.html` shows the text being written from the sound
    - `headwise look --model RUN/model "Once upon a time" --what saliency --merge --output saliency.svg`
    """
    if output is None and what != "alignment" and not all(between):
        raise UsageError("name the file to write: --output attention.html (or .svg, .png)")
    if output is not None and output.suffix.lower() not in (".html", ".svg", ".png"):
        raise UsageError(f"{output}: the name of the output must end in .html, .svg or .png")
    from headwise.workflows.models import choose_model

    directory = choose_model(model, source_language, target_language)
    from headwise.workflows.look import look_inside

    meant = (source_language, target_language) if model else ("", "")
    seen = look_inside(directory, text, target, beam=beam, prefix=prefix, languages=meant)
    if all(between):
        from headwise.look.between import rank_heads
        from headwise.look.capture import Look

        if not isinstance(seen, Look):
            raise UsageError("--between is for two words of a text; this model does not read text")
        ranked = rank_heads(seen, *between)
        layer, head = layer or ranked[0].layer, head or ranked[0].head  # what a picture shows
        for one in ranked:
            print(f"{one.weight:.4f}\tlayer {one.layer}\thead {one.head}\tmost to {one.favourite}")
    if what == "alignment":
        print(seen.alignment(layer, head))
    if output is not None:
        seen.save(output, what, layer, head, merge_pieces=merge)
        typer.echo(f"wrote {output}", err=True)
