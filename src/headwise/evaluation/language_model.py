"""Scores text with a language model: the log-probability of every token, each once, with as much context as fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray

from headwise.evaluation.perplexity import Perplexity, Window, from_sums, windows
from headwise.losses import states_loss
from headwise.models.interface import Network
from headwise.text.tokenizer import EOS, PAD, UNK, Tokenizer

_ROWS_TOKENS = 8192  # tokens per forward pass, padding included
DEFAULT_CONTEXT = 1024  # tokens read at once by a model without a limit of its own
_LINES = 1000  # lines tokenized per call


def text_perplexity(
    model: Network,
    tokenizer: Tokenizer,
    lines: Iterable[str],
    *,
    stride: int = 0,
    on_progress: Callable[[int], None] | None = None,
) -> Perplexity:
    """Computes the perplexity of `lines` as one running text with an end of sentence after each line, as in training.

    `stride` 0 means half of the model's context: every token then has at least half a context before it. A model that
    remembers earlier segments reads `stride` tokens at a time (0: a segment), and has its memory before each of them.
    """
    context, stride = _reach(model, stride)
    tokens, words, characters = _read(tokenizer, lines)
    nats = score_stream(model, tokens, context=context, stride=stride, on_progress=on_progress)
    return from_sums(
        nats,
        tokens=len(tokens) - 1,
        unknown=int((tokens[1:] == UNK).sum()),
        text=(words, characters),
        tokenizer=f"{tokenizer.kind}-{tokenizer.size}",
        context=context,
        stride=stride,
    )


def _reach(model: Network, stride: int = 0) -> tuple[int, int]:
    """The context and the stride: after the first window each token has at least context - stride tokens before it."""
    if model.segment is not None:
        stride = stride or model.segment
        return model.memory + stride, stride
    context = model.max_length or DEFAULT_CONTEXT
    return context, stride or max(1, context // 2)


def _read(tokenizer: Tokenizer, lines: Iterable[str]) -> tuple[NDArray[np.int64], int, int]:
    """Returns the stream as in training (end of sentence at the start and after each line), words and characters."""
    parts: list[NDArray[np.int64]] = [np.array([EOS], dtype=np.int64)]
    words = characters = 0
    remaining = iter(lines)
    while chunk := list(islice(remaining, _LINES)):
        words += sum(len(line.split()) + 1 for line in chunk)
        characters += sum(len(tokenizer.normalise(line)) + 1 for line in chunk)
        parts += [np.array([*ids, EOS], dtype=np.int64) for ids in tokenizer.encode_batch(chunk)]
    return np.concatenate(parts), words, characters


@torch.inference_mode()
def score_stream(
    model: Network,
    tokens: NDArray[np.int64],
    *,
    context: int,
    stride: int,
    on_progress: Callable[[int], None] | None = None,
) -> float:
    """Sums -log p over all tokens but the first."""
    if model.segment is not None:
        return _score_segments(model, tokens, stride, on_progress)
    nats = 0.0
    for group in _groups(windows(len(tokens), context, stride), max(1, _ROWS_TOKENS // context)):
        ids, targets = _rows(tokens, group)
        sums = states_loss(model, model.states(ids), targets, ignore=PAD)
        nats += float(sums.log_loss)
        if on_progress is not None:
            on_progress(sums.count)
    return nats


def _score_segments(
    model: Network, tokens: NDArray[np.int64], width: int, on_progress: Callable[[int], None] | None
) -> float:
    """One segment after the other, each with the memory that the one before it left."""
    nats, memory = 0.0, tuple[torch.Tensor, ...]()
    device = next(model.parameters()).device
    for start in range(0, len(tokens) - 1, width):
        part = torch.from_numpy(tokens[start : start + width + 1]).to(device)[None]
        states, memory = model.carried(part[:, :-1], *memory)
        sums = states_loss(model, states, part[:, 1:], ignore=PAD)
        nats += float(sums.log_loss)
        if on_progress is not None:
            on_progress(sums.count)
    return nats


def score_lines(model: Network, sentences: Sequence[Sequence[int]]) -> list[float]:
    """Computes log p of each line by itself, including its end of sentence."""
    context, stride = _reach(model)
    streams = [np.array([EOS, *sentence, EOS], dtype=np.int64) for sentence in sentences]
    return [-score_stream(model, stream, context=context, stride=stride) for stream in streams]


def _rows(tokens: NDArray[np.int64], group: Sequence[Window]) -> tuple[torch.Tensor, torch.Tensor]:
    """Stacks windows into input ids and targets, both (B, T); targets that do not count are padding."""
    width = max(window.end - window.start for window in group) - 1
    ids = np.full((len(group), width), PAD, dtype=np.int64)
    targets = np.full((len(group), width), PAD, dtype=np.int64)
    for row, window in enumerate(group):
        length = window.end - window.start - 1
        ids[row, :length] = tokens[window.start : window.end - 1]
        targets[row, window.scored - window.start - 1 : length] = tokens[window.scored : window.end]
    return torch.from_numpy(ids), torch.from_numpy(targets)


def _groups(items: Iterator[Window], size: int) -> Iterator[list[Window]]:
    while group := list(islice(items, size)):
        yield group
