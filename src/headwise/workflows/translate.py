"""Lines in, translated lines out: which engine, in which batches, in the order of the input."""

from __future__ import annotations

import importlib.util
import select
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwise.bundle.directory import Bundle, open_bundle
from headwise.decoding.hypothesis import Scores
from headwise.decoding.translator import Translation, Translator
from headwise.errors import DataError, UsageError, WorkFailed
from headwise.text.lines import STANDARD_INPUT, OnBad, arriving_lines, line_blocks
from headwise.text.tokenizer import TokenizerPair

if TYPE_CHECKING:
    from headwise.decoding.engine import Engine

ENGINES = ("auto", "torch", "ctranslate2")
# Lines translated in one call: many, so that batches can be filled by length; few enough to show progress.
CHUNK = 1024
# Calls under way at once with the fast engine, so that its workers never wait for text to be cut up and joined.
AHEAD = 3

Told = Callable[[str], None]  # is given a warning for the user, one line


@dataclass(frozen=True)
class Wanted:
    """What is asked of a translation beyond the text."""

    beam: int | None = None
    n_best: int = 1
    length_penalty: float | None = None
    glossary: dict[str, str] = field(default_factory=dict)
    protect: bool = False
    split_sentences: bool = False

    @property
    def plain(self) -> bool:
        """Plain search, which every engine does."""
        return not self.glossary and not self.protect

    def arguments(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def open_translator(
    model: str | Path,
    engine: str = "auto",
    *,
    precision: str = "int8",
    plain: bool = True,
    scores: Scores = "tokens",
) -> Translator:
    """A translator on one of the ENGINES. `auto` is the fast one where it is installed and what is asked is `plain`.

    `scores` saves work: with "sentences" the fast engine gives no log-probabilities of tokens, and with "none" there
    is no confidence, and no score of greedy search either (they are nan).
    """
    if engine not in ENGINES:
        raise UsageError(f"unknown engine '{engine}'; there are {', '.join(ENGINES)}")
    bundle = open_bundle(model)
    if bundle.family != "transformer":
        raise UsageError(
            f"{model} is a model of family '{bundle.family}', which does not translate; use headwise generate"
        )
    tokenizers = TokenizerPair.load(bundle.path)
    if engine == "ctranslate2" and not plain:
        raise UsageError("the ctranslate2 engine knows no glossary and protects nothing; use --engine torch or auto")
    if engine == "ctranslate2" or (engine == "auto" and plain and importlib.util.find_spec("ctranslate2")):
        try:
            return Translator(bundle, tokenizers, _fast_engine(bundle, tokenizers, precision, scores))
        except (WorkFailed, UsageError):
            if engine == "ctranslate2":
                raise
    return Translator(bundle, tokenizers, _torch_engine(bundle, scores))


def _fast_engine(bundle: Bundle, tokenizers: TokenizerPair, precision: str, scores: Scores) -> Engine:
    if not importlib.util.find_spec("ctranslate2"):
        raise UsageError("the ctranslate2 engine is not installed; pip install ctranslate2, or use --engine torch")
    from headwise.decoding.ctranslate2_engine import CTranslate2Engine
    from headwise.workflows.export import kept_export

    return CTranslate2Engine(kept_export(bundle, tokenizers, precision), tokenizers, scores=scores)


def _torch_engine(bundle: Bundle, scores: Scores) -> Engine:
    from headwise.bundle.weights import load_model
    from headwise.decoding.torch_engine import TorchEngine

    return TorchEngine(load_model(bundle), frozen=True, scores=scores)


def translate_lines(
    translator: Translator, chunks: Iterable[Sequence[str]], wanted: Wanted
) -> Iterator[tuple[Sequence[str], list[Translation]]]:
    """Each chunk of lines with its translations, in order. An empty chunk asks for all that is under way."""
    arguments = wanted.arguments()
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


def input_chunks(file: str, tell: Told) -> Iterator[list[str]]:
    """Lines of a file, or of standard input as they arrive, at most CHUNK at a time; an empty chunk where more must be
    waited for.

    A line that is not UTF-8 stays a line: what cannot be decoded becomes U+FFFD, and `tell` is told. One that is longer
    than 10 MB, a file in another encoding and a damaged archive are errors.
    """
    on_bad = _judge(tell)
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


def _judge(tell: Told) -> OnBad:
    def on_bad(kind: str, error: DataError) -> None:
        if kind == "empty-file":
            return
        if kind != "encoding" or error.line is None:
            raise error
        tell(f"{error.file}:{error.line}: not UTF-8; the bytes that cannot be read are replaced by U+FFFD")

    return on_bad


def read_glossary(path: str) -> dict[str, str]:
    """Source term, tab, target term: one pair a line; empty lines are passed over."""
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
