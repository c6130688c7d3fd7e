"""How likely a model finds given text, line by line, by the model's own precision (torch)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from headwise.bundle.weights import open_model
from headwise.decoding.torch_engine import TorchEngine
from headwise.errors import DataError, UsageError
from headwise.evaluation.language_model import score_lines
from headwise.text.lines import line_blocks
from headwise.text.tokenizer import TokenizerPair

_CHUNK = 512


@dataclass(frozen=True)
class LineScore:
    """`log_prob` is the sum over the line's tokens and its end of sentence, natural logarithm."""

    log_prob: float
    tokens: tuple[str, ...]
    log_probs: tuple[float, ...] = ()  # of each token and of the end of sentence; none from a language model


def score_pairs(model: str, source: str, target: str) -> Iterator[list[LineScore]]:
    """Scores of aligned files, some lines at a time."""
    bundle, network, tokenizers = open_model(model)
    if bundle.family != "transformer":
        raise UsageError(
            f"{model} is a model of family '{bundle.family}'; give it --text instead of --source and --target"
        )
    engine = TorchEngine(network)
    for sources, targets in _aligned(source, target):
        yield _scored(engine, tokenizers, sources, targets)


def score_text(model: str, text: str) -> Iterator[list[LineScore]]:
    """Scores of a file's lines by a language model, each line by itself."""
    bundle, network, tokenizers = open_model(model)
    if bundle.family != "lm":
        raise UsageError(
            f"{model} is a model of family '{bundle.family}'; give it --source and --target instead of --text"
        )
    found: Any = network
    for _, lines in line_blocks(text):
        for start in range(0, len(lines), _CHUNK):
            sentences = tokenizers.target.encode_batch(lines[start : start + _CHUNK])
            totals = score_lines(found, sentences)
            pieces = [tuple(tokenizers.target.pieces(sentence)) for sentence in sentences]
            yield [LineScore(total, tokens) for total, tokens in zip(totals, pieces, strict=True)]


def _scored(engine: TorchEngine, tokenizers: TokenizerPair, sources: list[str], targets: list[str]) -> list[LineScore]:
    ids = tokenizers.target.encode_batch(targets)
    found = engine.score(tokenizers.source.encode_batch(sources), ids)
    return [
        LineScore(sum(log_probs), tuple(tokenizers.target.pieces(sentence)), log_probs)
        for sentence, log_probs in zip(ids, found, strict=True)
    ]


def _aligned(source: str, target: str) -> Iterator[tuple[list[str], list[str]]]:
    sources: list[str] = []
    targets: list[str] = []
    for number, (left, right) in enumerate(zip_longest(_lines(source), _lines(target)), start=1):
        if left is None or right is None:
            shorter, longer = (source, target) if left is None else (target, source)
            raise DataError(
                f"ends after {number - 1:,} lines, but {longer} goes on; the files must be aligned", file=shorter
            )
        sources.append(left)
        targets.append(right)
        if len(sources) == _CHUNK:
            yield sources, targets
            sources, targets = [], []
    if sources:
        yield sources, targets


def _lines(file: str) -> Iterator[str]:
    for _, lines in line_blocks(file):
        yield from lines
