"""Lines in, translated lines out: which engine, in which batches, in the order of the input."""

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

# Lines translated in one call: many, so that batches can be filled by length; few enough to show progress.
CHUNK = 1024
# Calls in flight with the fast engine, so that its workers never wait for text to be tokenized and joined.
AHEAD = 3

Tell = Callable[[str], None]  # is given a warning for the user, one line


@dataclass(frozen=True)
class TranslateOptions:
    """What is asked of a translation beyond the text."""

    beam: int | None = None
    n_best: int = 1
    length_penalty: float | None = None
    glossary: dict[str, str] = field(default_factory=dict)
    protect: bool = False
    split_sentences: bool = False

    def arguments(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def open_translator(model: str | Path, engine: str = "auto", **options: Any) -> Translator:
    """A translator on one of the engines of the task; see `Translate.open` for the options."""
    bundle = open_bundle(model)
    if bundle.task_name != TASK.name:
        raise UsageError(f"{model} is a model of the task '{bundle.task_name}'; use headwise {bundle.task_name}")
    return TASK.open(bundle, engine, **options)


def translate_lines(
    translator: Translator, chunks: Iterable[Sequence[str]], options: TranslateOptions
) -> Iterator[tuple[Sequence[str], list[Translation]]]:
    """Each chunk of lines with its translations, in order. An empty chunk asks for all that is under way."""
    arguments = options.arguments()
    if translator.engine.name != "ctranslate2":
        for chunk in chunks:
            if chunk:
                yield chunk, translator.translate(chunk, **arguments)
        return
    pending: deque[tuple[Sequence[str], Future[list[Translation]]]] = deque()
    with ThreadPoolExecutor(AHEAD) as pool:
        for chunk in chunks:
            if chunk:
                pending.append((chunk, pool.submit(translator.translate, chunk, **arguments)))
            while pending and (len(pending) >= AHEAD or not chunk):
                done, future = pending.popleft()
                yield done, future.result()
        for done, future in pending:
            yield done, future.result()


def input_chunks(file: str, tell: Tell) -> Iterator[list[str]]:
    """Lines of a file, or of standard input as they arrive, at most CHUNK at a time; an empty chunk where more must be
    waited for.

    A line that is not UTF-8 stays a line: what cannot be decoded becomes U+FFFD, and `tell` is told. One that is longer
    than 10 MB, a file in another encoding and a damaged archive are errors.
    """
    on_bad = _bad_line_handler(tell)
    blocks = arriving_lines(on_bad) if file == STANDARD_INPUT else line_blocks(file, on_bad)
    for _, lines in blocks:
        for start in range(0, len(lines), CHUNK):
            yield lines[start : start + CHUNK]
        if file == STANDARD_INPUT and not _more_to_read():
            yield []


def _more_to_read() -> bool:
    """Would reading standard input now give something at once (its end included)?"""
    try:
        return bool(select.select([sys.stdin], [], [], 0)[0])
    except (OSError, ValueError):  # not a file that can be asked
        return False


def _bad_line_handler(tell: Tell) -> OnBad:
    def on_bad(kind: str, error: DataError) -> None:
        if kind == "empty-file":
            return
        if kind != "encoding" or error.line is None:
            raise error
        tell(f"{error.file}:{error.line}: not UTF-8; the bytes that cannot be read are replaced by U+FFFD")

    return on_bad


def read_glossary(path: str) -> dict[str, str]:
    """Source term, tab, target term: one pair per line; empty lines are passed over."""
    glossary: dict[str, str] = {}
    for first, lines in line_blocks(path):
        for number, line in enumerate(lines, start=first):
            if not line.strip():
                continue
            terms = [term.strip() for term in line.split("\t")]
            if len(terms) != 2 or not all(terms):
                raise DataError("a glossary line is a source term, a tab and a target term", file=path, line=number)
            if glossary.setdefault(terms[0], terms[1]) != terms[1]:
                raise DataError(f"'{terms[0]}' has two translations; keep one", file=path, line=number)
    return glossary
