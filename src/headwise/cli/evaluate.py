"""`headwise evaluate`: scores of a model or of an output, with the signatures that make them comparable."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from headwise.errors import UsageError

if TYPE_CHECKING:
    from headwise.evaluation.contamination import Overlap
    from headwise.workflows.evaluate import Evaluation, TextEvaluation


def evaluate(
    model: Annotated[str, typer.Option("--model", "-m", help="Model directory, such as RUN/model.")] = "",
    source: Annotated[str, typer.Option("--source", help="Test text to translate.")] = "",
    reference: Annotated[
        list[str] | None, typer.Option("--reference", help="Its translation; repeat it for more references.")
    ] = None,
    hypothesis: Annotated[str, typer.Option("--hypothesis", help="Score this output instead of a model's.")] = "",
    against: Annotated[str, typer.Option("--against", help="Another output: is the difference significant?")] = "",
    against_model: Annotated[str, typer.Option("--against-model", help="Another model, likewise.")] = "",
    test: Annotated[
        Literal["bootstrap", "randomisation"], typer.Option("--test", help="The paired significance test.")
    ] = "bootstrap",
    text: Annotated[str, typer.Option("--text", help="Text for a language model: its perplexity.")] = "",
    stride: Annotated[
        int, typer.Option("--stride", min=0, help="Tokens a window moves on (--text). [default: half the context]")
    ] = 0,
    language: Annotated[
        str, typer.Option("--language", help="Target language, which picks the tokenizer. [default: the model's]")
    ] = "",
    beam: Annotated[int | None, typer.Option("--beam", min=1, help="Hypotheses kept. [default: the model's]")] = None,
    engine: Annotated[
        Literal["auto", "torch", "ctranslate2"], typer.Option("--engine", help="ctranslate2 computes in float32 here.")
    ] = "auto",
    output: Annotated[str, typer.Option("--output", "-o", help="Also write the translations to this file.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="The scores as JSON, for programs.")] = False,
) -> None:
    """Evaluate a model, or an output: BLEU, chrF and TER by sacreBLEU, or a language model's perplexity.

    Warns where test lines occur in the model's training data. Two outputs or models are compared by a paired test.

    Examples:

    - `headwise evaluate --model run/model --source test.en --reference test.de`
    - `headwise evaluate --hypothesis mine.de --reference test.de --against theirs.de --language de`
    - `headwise evaluate --model new/model --against-model old/model --source test.en --reference test.de`
    - `headwise evaluate --model lm/model --text test.txt`
    """
    from headwise.workflows import evaluate as work

    if text:
        if not model or source or reference or hypothesis or against or against_model:
            raise UsageError("--text is scored by itself: give it with --model DIR and nothing else")
        with progress("tokens") as advance:
            found = work.evaluate_text(model, text, stride=stride, on_progress=advance)
        _warn_of_overlap(found.overlap)
        print(_text_json(found) if as_json else _text_lines(found))
        return
    question = work.Question(
        reference or [], model, source, hypothesis, against, against_model, test, language, beam, engine
    )
    with progress("lines") as advance:
        result = work.evaluate(question, advance)
    _warn_of_overlap(result.overlap)
    if output:
        from headwise.files import whole_file

        with whole_file(output) as stream:
            stream.writelines(f"{line}\n" for line in result.translations)
    print(_json(result) if as_json else _lines(result))


def _lines(result: Evaluation) -> str:
    rows = [f"{score.name:<6} {score.value:6.2f}  {score.signature}" for score in result.scores]
    if result.decoding:
        rows.append(f"decoded with {result.decoding}")
    for one in result.comparisons:
        verdict = "significant" if one.significant else "not significant"
        rows.append(
            f"{one.metric:<6} {one.baseline:6.2f} → {one.system:6.2f} ({one.difference:+.2f})  "
            f"p = {one.p_value:.4f}, {verdict} at 5 %  {one.signature}"
        )
    return "\n".join(rows)


def _json(result: Evaluation) -> str:
    record: dict[str, Any] = {"scores": [asdict(score) for score in result.scores], "decoding": result.decoding}
    record["comparisons"] = [
        {**asdict(one), "difference": one.difference, "significant": one.significant} for one in result.comparisons
    ]
    record["overlap"] = _overlap_dict(result.overlap)
    return json.dumps(record, ensure_ascii=False, indent=2)


def _text_lines(result: TextEvaluation) -> str:
    found = result.perplexity
    return (
        f"perplexity          {found.value:10.4f}  {found.signature}\n"
        f"per word            {found.per_word:10.4f}\n"
        f"bits per character  {found.bits_per_character:10.4f}"
    )


def _text_json(result: TextEvaluation) -> str:
    found = result.perplexity
    figures = {"perplexity": found.value, "per_word": found.per_word, "bits_per_character": found.bits_per_character}
    record = {**figures, **asdict(found), "overlap": _overlap_dict(result.overlap)}
    return json.dumps(record, ensure_ascii=False, indent=2)


def _overlap_dict(found: Overlap | None) -> dict[str, Any] | None:
    return None if found is None else {**asdict(found), "estimate": found.estimate}


def _warn_of_overlap(found: Overlap | None) -> None:
    if found is None or not found.seen:
        return
    share = (
        "" if found.checked == found.lines else f" ({found.seen:,} of the {found.checked:,} that could be looked up)"
    )
    first = ", ".join(map(str, found.first))
    print(
        f"headwise: warning: about {found.estimate:,} of {found.lines:,} test lines occur in the training data{share}, "
        f"for example line {first}; the scores say less than they seem to",
        file=sys.stderr,
    )


@contextmanager
def progress(unit: str) -> Iterator[Callable[[int], None] | None]:
    """How much is done, and how fast, on standard error, if someone is watching."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    done = TextColumn("{task.completed:,} " + unit + ", {task.fields[rate]:,} a second")
    with Progress(SpinnerColumn(), done, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, rate=0)
        yield lambda count: bar.update(task, advance=count, rate=int(bar.tasks[0].speed or 0))
