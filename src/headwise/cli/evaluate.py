"""`headwise evaluate`: scores a model or an output, with signatures that make the scores comparable."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from headwise.cli.options import Model
from headwise.cli.progress import progress
from headwise.errors import UsageError

if TYPE_CHECKING:
    from headwise.evaluation.contamination import Overlap


def evaluate(
    model: Model = "",
    source: Annotated[
        str,
        typer.Option("--source", help="Test text to translate; a TSV, CSV or JSONL file may hold both sides."),
    ] = "",
    reference: Annotated[
        list[str] | None, typer.Option("--reference", help="Its translation; may be repeated for more references.")
    ] = None,
    hypothesis: Annotated[str, typer.Option("--hypothesis", help="Score this output instead of a model's.")] = "",
    against: Annotated[
        str, typer.Option("--against", help="Another output, to test whether the difference is significant.")
    ] = "",
    against_model: Annotated[str, typer.Option("--against-model", help="Another model, to test likewise.")] = "",
    test: Annotated[
        Literal["bootstrap", "randomisation"], typer.Option("--test", help="The paired significance test.")
    ] = "bootstrap",
    table: Annotated[str, typer.Option("--table", help="Texts with labels, or pairs of texts for vectors.")] = "",
    columns: Annotated[str, typer.Option("--columns", help="Of the table. [default: those of the training]")] = "",
    sounds: Annotated[str, typer.Option("--sounds", help="A table of recordings, for a speech model.")] = "",
    images: Annotated[str, typer.Option("--images", help="A folder with a folder per class, for a classifier.")] = "",
    text: Annotated[str, typer.Option("--text", help="Text to predict (language models), or to fill gaps in.")] = "",
    stride: Annotated[
        int,
        typer.Option(
            "--stride",
            min=0,
            help="Of --text: tokens between windows (default: half the context); for a model that fills gaps, tokens "
            "between those that are hidden together (default: one at a time is hidden).",
        ),
    ] = 0,
    fields: Annotated[
        str, typer.Option("--fields", help="Columns (1,2) or names (en,de) of source and reference in a table.")
    ] = "",
    source_language: Annotated[
        str, typer.Option("--from", help="Of a model of several directions: that from this language …")
    ] = "",
    target_language: Annotated[str, typer.Option("--to", help="… to this one.")] = "",
    prefix: Annotated[
        str, typer.Option("--prefix", help="Text before each source that says what to do, as in training.")
    ] = "",
    recipe: Annotated[
        str,
        typer.Option("--recipe", help="Instead of files: the test text of a recipe, each part of a mixture by itself."),
    ] = "",
    language: Annotated[
        str, typer.Option("--language", help="Target language, which selects BLEU's tokenizer. [default: the model's]")
    ] = "",
    beam: Annotated[
        int | None, typer.Option("--beam", min=1, help="Beam size; 1 is greedy. [default: the model's]")
    ] = None,
    engine: Annotated[
        Literal["auto", "torch", "ctranslate2"],
        typer.Option(
            "--engine", help="Not for --text; auto is torch for classifiers and vectors, else as in headwise translate."
        ),
    ] = "auto",
    precision: Annotated[
        Literal["int8", "float32"],
        typer.Option("--precision", help="Of the ctranslate2 engine; headwise translate has int8 by default."),
    ] = "float32",
    whole_lines: Annotated[
        bool, typer.Option("--whole-lines", help="Translate each line as a whole, even if it has several sentences.")
    ] = False,
    output: Annotated[
        str,
        typer.Option("--output", "-o", help="Also write the translations, or (.svg, .png) a picture of the confusion."),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Evaluate a model or an output: BLEU, chrF and TER by sacreBLEU, perplexity, accuracy and macro-F1, WER and CER.

    Warns if test lines occur in the model's training data. Two outputs or models are compared by a paired test.

    Examples:

    - `headwise evaluate --model run/model --source test.en --reference test.de`
    - `headwise evaluate --model run/model --source test.csv --fields english,german`
    - `headwise evaluate --model t5/model --from de --to en --source test.de --reference test.en`
    - `headwise evaluate --model t5/model --recipe multi30k-t5`
    - `headwise evaluate --hypothesis mine.de --reference test.de --against theirs.de --language de`
    - `headwise evaluate --model new/model --against-model old/model --source test.en --reference test.de`
    - `headwise evaluate --model lm/model --text test.txt`
    - `headwise evaluate --model reviews/model --table test.csv`
    - `headwise evaluate --model tiny.en --sounds test/metadata.csv`
    """
    if text and (not model or source or reference or hypothesis or against):
        raise UsageError("--text cannot be combined with other files: give it with --model and --against-model only")
    from headwise.workflows.evaluate import evaluate as run

    names = [name.strip() for name in fields.split(",") if name.strip()]
    asked: dict[str, Any] = {
        "text": text, "stride": stride, "fields": names, "against_model": against_model,
        "test": test if against_model else "",
    } if text else {
        "source": source, "reference": reference, "hypothesis": hypothesis, "against": against,
        "against_model": against_model, "test": test, "language": language, "beam": beam, "engine": engine,
        "fields": names, "precision": precision, "split_sentences": not whole_lines, "prefix": prefix,
        "languages": (source_language, target_language) if source_language or target_language else (),
        "recipe": recipe,
    }  # fmt: skip
    if table or images:
        named = columns.split(",") if columns else []
        asked = {"table": table, "images": images, "columns": named, "engine": engine, "precision": precision}
    if sounds:
        named = columns.split(",") if columns else []
        asked = {"sounds": sounds, "columns": named, "engine": engine, "beam": beam, "language": language}
    if model and hypothesis:
        raise UsageError("give --model DIR with --source FILE, or --hypothesis FILE")
    with progress("tokens" if text else "lines") as advance:
        result = run(model, advance, **asked)
    _warn_of_overlap(result.overlap)
    if output and hasattr(result, "picture"):
        result.picture(output)
    elif output:
        from headwise.files import whole_file

        with whole_file(output) as stream:
            stream.writelines(f"{line}\n" for line in getattr(result, "translations", ()))
    print(json.dumps(result.as_dict(), ensure_ascii=False, indent=2) if as_json else "\n".join(result.lines()))


def _warn_of_overlap(found: Overlap | None) -> None:
    if found is None or not found.seen:
        return
    share = (
        "" if found.checked == found.lines else f" ({found.seen:,} of the {found.checked:,} that could be looked up)"
    )
    first = ", ".join(map(str, found.first))
    print(
        f"headwise: warning: about {found.estimate:,} of {found.lines:,} test lines occur in the training data{share}, "
        f"for example line {first}; the scores are too optimistic",
        file=sys.stderr,
    )
