"""`headwise transcribe`: sound files to text, with times where the model knows them."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from headwise.cli.options import Model
from headwise.cli.translate import output, warn
from headwise.errors import UsageError


def transcribe(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="WAV, FLAC, OGG or MP3, of any length.")],
    model: Model = "",
    output_file: Annotated[
        str, typer.Option("--output", "-o", help="File to write; it appears when everything is transcribed.")
    ] = "-",
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object per file: segments with times and confidence.")
    ] = False,
    srt: Annotated[bool, typer.Option("--srt", help="Subtitles in SubRip's format, of one file.")] = False,
    vtt: Annotated[bool, typer.Option("--vtt", help="Subtitles as WebVTT, of one file.")] = False,
    language: Annotated[
        str | None, typer.Option("--language", help="Of what is said: en. [default: detected, if the model can]")
    ] = None,
    translate: Annotated[bool, typer.Option("--translate", help="Write English, whatever is spoken.")] = False,
    beam: Annotated[
        int | None, typer.Option("--beam", min=1, help="Beam size; 1 is greedy. [default: the model's]")
    ] = None,
    silence: Annotated[
        float | None, typer.Option("--silence", help="Decibels; what stays below is not read. [default: -60]")
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", help="torch, ctranslate2, or auto: the faster one that can run the model.")
    ] = "auto",
    batch: Annotated[int | None, typer.Option("--batch", min=1, help="Windows decoded together. [default: 8]")] = None,
) -> None:
    """Transcribe sound files: print one line of text per file.

    A long file is read in windows. Silence is skipped, and gives an empty line. A file that is cut off is transcribed
    as far as it goes, with a warning.

    Examples:

    - `headwise transcribe --model tiny.en talk.mp3`
    - `headwise transcribe --model tiny.en --srt film.flac --output film.srt`
    - `headwise transcribe --model runs/digits/model --json *.wav`
    """
    if not model:
        raise UsageError("no model: give --model DIR, such as RUN/model")
    if as_json + srt + vtt > 1:
        raise UsageError("give one of --json, --srt and --vtt")
    if (srt or vtt) and len(files) > 1:
        raise UsageError("subtitles belong to one file: give one at a time")
    from headwise.cli.progress import progress
    from headwise.decoding.transcript import subtitles
    from headwise.workflows.transcribe import open_transcriber

    opened = open_transcriber(model, engine)
    task = "translate" if translate else None
    asked: dict[str, Any] = {"language": language, "task": task, "beam": beam, "silence": silence}
    with output(output_file) as stream, progress("seconds") as advance:
        found = opened.transcribe_each(
            files, on_progress=lambda seconds: advance(round(seconds)), on_cut=lambda error: warn(str(error)),
            batch=batch, **asked,
        )  # fmt: skip
        for transcript in found:
            if srt or vtt:
                stream.write(subtitles(transcript, "srt" if srt else "vtt"))
            elif as_json:
                stream.write(json.dumps(transcript.as_dict(), ensure_ascii=False) + "\n")
            else:
                stream.write(transcript.text + "\n")
            stream.flush()
