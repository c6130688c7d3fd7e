"""`headwise translate`: translates arguments, standard input or files; output line n belongs to input line n."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from headwise.cli.options import Engine, Model, Precision
from headwise.cli.progress import Advance, progress
from headwise.config.ranks import Ranks
from headwise.errors import UsageError

if TYPE_CHECKING:
    from headwise.decoding.hypothesis import Scores
    from headwise.decoding.translator import Translation

Render = Callable[[str, "Translation", "list[str]"], str]


def translate(
    text: Annotated[
        list[str] | None, typer.Argument(help="Text to translate. [default: standard input, line by line]")
    ] = None,
    model: Model = "",
    source_language: Annotated[
        str, typer.Option("--from", help="Instead of --model: use a shipped model that translates from this language …")
    ] = "",
    target_language: Annotated[
        str,
        typer.Option(
            "--to",
            help="… to this one; either is enough if only one model fits. With --model: one of its directions.",
        ),
    ] = "",
    prefix: Annotated[
        str | None,
        typer.Option("--prefix", help="Text before each sentence that says what to do, as in training. ['': none]"),
    ] = None,
    input_file: Annotated[
        str, typer.Option("--input", "-i", help="File to translate line by line, possibly compressed (.gz, .xz, .zst).")
    ] = "-",
    output_file: Annotated[
        str, typer.Option("--output", "-o", help="File to write; it appears when everything is translated.")
    ] = "-",
    beam: Annotated[int | None, typer.Option("--beam", help="Beam size; 1 is greedy. [default: the model's]")] = None,
    length_penalty: Annotated[
        float | None, typer.Option("--length-penalty", help="Higher favours longer output. [default: the model's]")
    ] = None,
    engine: Engine = "auto",
    precision: Precision = "int8",
    n_best: Annotated[int, typer.Option("--n-best", help="Translations per line, best first, separated by tabs.")] = 1,
    scores: Annotated[bool, typer.Option("--scores", help="Append a tab and the score to each translation.")] = False,
    alignments: Annotated[
        bool, typer.Option("--alignments", help="Append a tab and word links (Moses format: 0-0 1-2, source-target).")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line, with all details.")] = False,
    glossary: Annotated[
        str, typer.Option("--glossary", help="File of required terms: source term, tab, target term.")
    ] = "",
    protect: Annotated[
        bool, typer.Option("--protect", help="Keep placeholders, tags, addresses and numbers unchanged.")
    ] = False,
    whole_lines: Annotated[
        bool, typer.Option("--whole-lines", help="Translate each line as a whole, even if it has several sentences.")
    ] = False,
) -> None:
    """Translate text.

    Each sentence of a line is translated by itself. Empty lines stay empty. A sentence too long for the model (500
    tokens) is translated in pieces. Bytes that are not UTF-8
    are replaced by U+FFFD, with a warning that names the line. Lines longer than 10 MB are refused.

    Examples:

    - `headwise translate --to de "A man is riding a bicycle."`
    - `headwise translate --model run/model "A dog runs."`
    - `headwise translate --model t5/model --from de --to en "Ein Hund rennt."`
    - `headwise translate --model t5/model --prefix "translate English to German: " "A dog runs."`
    - `headwise translate --model run/model --input book.en.gz --output book.de`
    - `torchrun --nproc-per-node 8 -m headwise translate --model run/model --input big.en --output big.de`
    - `cat news.en | headwise translate --model run/model --beam 5 --json`
    - `headwise translate --model run/model --glossary terms.tsv --protect < help.en > help.de`
    """
    if text and input_file != "-":
        raise UsageError("give either text or --input, not both")
    ranks = Ranks.of_environment()
    if ranks.size > 1 and (text or "-" in (input_file, output_file)):
        raise UsageError("several processes can translate only from file to file: give --input and --output")
    from headwise.workflows.models import choose_model

    directory = choose_model(model, source_language, target_language)
    from headwise.workflows.translate import (
        TranslateOptions,
        input_chunks,
        open_translator,
        read_glossary,
        translate_lines,
    )

    terms = read_glossary(glossary) if glossary else {}
    options = TranslateOptions(beam, n_best, length_penalty, terms, protect, not whole_lines)
    wanted: Scores = "tokens" if as_json else "sentences" if scores else "none"
    if engine == "ctranslate2" and (terms or protect):
        raise UsageError("the ctranslate2 engine does not support --glossary and --protect; use --engine torch or auto")
    meant = (source_language, target_language) if model else ("", "")
    translator = open_translator(directory, engine, precision=precision, scores=wanted, prefix=prefix, languages=meant)
    translator.options(beam=beam, n_best=n_best, length_penalty=length_penalty)  # reports a wrong value before any work
    chunks: Iterable[list[str]] = [list(text)] if text else input_chunks(input_file, warn)
    if not text and input_file == "-" and sys.stdin.isatty():
        print("Type a line and press Enter; end with Ctrl-D.", file=sys.stderr)
    line = _as_json if as_json else _as_text(scores, n_best)

    def render(chunks: Iterable[list[str]]) -> Iterator[tuple[list[str], list[int]]]:
        for sources, translations in translate_lines(translator, chunks, options):
            links = _links(translator, sources, translations) if alignments else [[] for _ in sources]
            cut_off = [place for place, translation in enumerate(translations) if translation.stopped != "eos"]
            yield [line(*row) for row in zip(sources, translations, links, strict=True)], cut_off

    if ranks.size > 1:
        asked = {
            **options.arguments(),
            "prefix": translator.prefix,
            "scores": scores,
            "alignments": alignments,
            "json": as_json,
        }
        about = {"model": translator.bundle.files, "engine": [translator.engine.name, precision], **asked}
        warn_of_cut_off(_shared(input_file, output_file, about, render))
        return
    cut_off_lines: list[int] = []
    done = 0
    with output(output_file) as stream, line_progress(input_file) as advance:
        for lines, cut_off in render(chunks):
            cut_off_lines += [done + place + 1 for place in cut_off]
            done += len(lines)
            stream.writelines(f"{row}\n" for row in lines)
            stream.flush()
            advance(len(lines))
    warn_of_cut_off(cut_off_lines)


def _shared(input_file: str, output_file: str, about: dict[str, Any], render: Any) -> list[int]:
    """Translates this process's share of the file, if torchrun started several."""
    from headwise.training.distributed import joined
    from headwise.workflows.distributed_translate import translate_parts

    with joined() as world, line_progress(input_file if world.leads else "-") as advance:

        def shown(chunks: Iterable[list[str]]) -> Iterator[tuple[list[str], list[int]]]:
            for lines, cut_off in render(chunks):
                yield lines, cut_off
                advance(len(lines) * world.size)  # the other ranks have done about as much

        return translate_parts(world, input_file, output_file, about, shown, warn)


def _as_text(scores: bool, n_best: int) -> Render:
    def line(source: str, translation: Translation, links: list[str]) -> str:
        if not source.strip():
            return ""
        columns = []
        for place, one in enumerate((translation, *translation.alternatives)[:n_best]):
            columns.append(one_line(one.text))
            columns += [f"{one.score:.4f}"] if scores else []
            columns += [links[place]] if links else []
        return "\t".join(columns)

    return line


def _as_json(source: str, translation: Translation, links: list[str]) -> str:
    ranked = [_as_dict(one) for one in (translation, *translation.alternatives)]
    for one, alignment in zip(ranked, links, strict=False):
        one["alignment"] = alignment
    record = {"source": source, **ranked[0], "alternatives": ranked[1:]}
    return json.dumps(record, ensure_ascii=False)


def _as_dict(translation: Translation) -> dict[str, Any]:
    return {
        "text": translation.text,
        "score": round(translation.score, 6),
        "confidence": round(translation.confidence, 4),
        "stopped": translation.stopped,
        "tokens": translation.tokens,
        "log_probs": [round(value, 6) for value in translation.log_probs],
    }


def _links(translator: Any, sources: Iterable[str], translations: list[Translation]) -> list[list[str]]:
    from headwise.tasks.alignments import alignments

    flat = [
        (source, one)
        for source, translation in zip(sources, translations, strict=True)
        for one in (translation, *translation.alternatives)
    ]
    lines = iter(alignments(translator, [source for source, _ in flat], [one for _, one in flat]))
    return [[next(lines) for _ in range(1 + len(translation.alternatives))] for translation in translations]


def one_line(text: str) -> str:
    """Replaces line breaks and tabs, which a model can generate: they would shift lines and columns of the output."""
    return text.translate({ord("\n"): " ", ord("\r"): " ", ord("\t"): " "})


def warn_of_cut_off(lines: list[int]) -> None:
    """Lists the lines whose translation was stopped before its end of sentence."""
    if lines:
        shown = ", ".join(map(str, lines[:5])) + (", …" if len(lines) > 5 else "")
        warn(f"{len(lines):,} translations were cut off, in a loop or at the length limit: line {shown}")


def warn(message: str) -> None:
    print(f"headwise: warning: {message}", file=sys.stderr)


@contextmanager
def output(file: str) -> Iterator[TextIO]:
    """Opens standard output, or a file that appears only when it is complete."""
    if file == "-":
        # The output is UTF-8 like the input, whatever the locale.
        reconfigure = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", newline="\n")
        yield sys.stdout
        return
    from headwise.files import whole_file

    with whole_file(file) as stream:
        yield stream


def line_progress(file: str) -> AbstractContextManager[Advance]:
    """Shows progress for a file, but not for standard input, whose length is unknown."""
    if file == "-" or not sys.stderr.isatty():
        return nullcontext(lambda lines: None)
    from headwise.text.lines import line_blocks

    return progress("lines", sum(len(lines) for _, lines in line_blocks(file, lambda kind, error: None)))
