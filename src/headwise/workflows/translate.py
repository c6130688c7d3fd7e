"""Translates lines of text, in the order of the input."""

from __future__ import annotations

import select
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headwise.bundle.directory import open_bundle
from headwise.decoding.translator import Translation
from headwise.errors import DataError, UsageError
from headwise.tasks.translate import TASK, Translator
from headwise.text.lines import STANDARD_INPUT, OnBad, arriving_lines, line_blocks

# Lines per call: enough to form batches of similar length, but few enough to show progress.
CHUNK = 1024
# Concurrent calls of the fast engine, so that its workers never wait while text is tokenized and joined.
AHEAD = 3

Tell = Callable[[str], None]  # shows a warning of one line to the user


@dataclass(frozen=True)
class TranslateOptions:
    """The options of a translation."""

    beam: int | None = None
    n_best: int = 1
    length_penalty: float | None = None
    glossary: dict[str, str] = field(default_factory=dict)
    protect: bool = False
    split_sentences: bool = True

    def arguments(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def open_translator(model: str | Path, engine: str = "auto", **options: Any) -> Translator:
    """Opens a translator with one of the task's engines; see `Translate.open` for the options."""
    bundle = open_bundle(model)
    if bundle.task_name != TASK.name:
        raise UsageError(f"{model} is a model of the task '{bundle.task_name}'; use headwise {bundle.task_name}")
    return TASK.open(bundle, engine, **options)


def translate_lines(
    translator: Translator, chunks: Iterable[Sequence[str]], options: TranslateOptions
) -> Iterator[tuple[Sequence[str], list[Translation]]]:
    """Yields each chunk of lines with its translations, in order. An empty chunk waits for all earlier ones."""
    arguments = options.arguments()
    if translator.engine.name != "ctranslate2":
        for chunk in chunks:
            if chunk:
                yield chunk, translator.translate(chunk, **arguments)
        return

    def work(chunk: Sequence[str]) -> list[Translation]:
        return translator.translate(chunk, **arguments)

    pending: deque[tuple[Sequence[str], Future[list[Translation]]]] = deque()
    with ThreadPoolExecutor(AHEAD) as pool:
        for chunk in chunks:
            if chunk:
                pending.append((chunk, pool.submit(work, chunk)))
            while pending and (len(pending) >= AHEAD or not chunk):
                done, future = pending.popleft()
                yield done, future.result()
        for done, future in pending:
            yield done, future.result()


def input_chunks(file: str, tell: Tell) -> Iterator[list[str]]:
    """Yields lines of a file, or of standard input as they arrive, at most CHUNK at a time. An empty chunk means that
    no more input is available yet.

    Bytes of a line that are not UTF-8 become U+FFFD, with a warning through `tell`. A line longer than 10 MB, a file in
    another encoding and a damaged archive are errors.
    """
    on_bad = _bad_line_handler(tell)
    blocks = arriving_lines(on_bad) if file == STANDARD_INPUT else line_blocks(file, on_bad)
    for _, lines in blocks:
        for start in range(0, len(lines), CHUNK):
            yield lines[start : start + CHUNK]
        if file == STANDARD_INPUT and not _more_to_read():
            yield []


def _more_to_read() -> bool:
    """Whether reading standard input would return at once, with data or its end."""
    try:
        return bool(select.select([sys.stdin], [], [], 0)[0])
    except (OSError, ValueError):  # standard input cannot be polled
        return False


def _bad_line_handler(tell: Tell) -> OnBad:
    def on_bad(kind: str, error: DataError) -> None:
        if kind == "empty-file":
            return
        if kind != "encoding" or error.line is None:
            raise error
        tell(f"{error.file}:{error.line}: not UTF-8; invalid bytes are replaced by U+FFFD")

    return on_bad


def read_glossary(path: str) -> dict[str, str]:
    """Reads a glossary: source term, tab, target term; one pair per line; empty lines are ignored."""
    glossary: dict[str, str] = {}
    for first, lines in line_blocks(path):
        for number, line in enumerate(lines, start=first):
            if not line.strip():
                continue
            terms = [term.strip() for term in line.split("\t")]
            if len(terms) != 2 or not all(terms):
                raise DataError(
                    "a glossary line must be a source term, a tab and a target term", file=path, line=number
                )
            if glossary.setdefault(terms[0], terms[1]) != terms[1]:
                raise DataError(f"'{terms[0]}' has two translations; keep one", file=path, line=number)
    return glossary
