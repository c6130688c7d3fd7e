"""Aligns the words of translations with those of their sources by cross-attention, in Moses format: `0-0 1-2`.

Words are separated by spaces; in a script without spaces each token is a word. The attention is the mean over the heads
of the second-to-last decoder layer, computed for the finished translation, with either engine.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headwise.decoding.translator import Translation, Translator
from headwise.errors import UsageError
from headwise.look.alignment import Alignment, align
from headwise.look.panels import Floats, Panel
from headwise.look.token_labels import Reading
from headwise.text.tokenizer import EOS, TokenizerPair


def alignments(translator: Translator, texts: Sequence[str], translations: Sequence[Translation]) -> list[str]:
    """Returns one line per translation, an empty one if there is no text; sentences are aligned one by one."""
    pieces = [_pieces(translator, *pair) for pair in zip(texts, translations, strict=True)]
    flat = [piece for each in pieces for piece in each]
    sources = translator.tokenizers.source.encode_batch([translator.prefix + text for text, _ in flat])
    targets = [list(translation.ids) for _, translation in flat]
    said = [place for place, target in enumerate(targets) if target]
    weights = translator.engine.attention([sources[i] for i in said], [targets[i] for i in said])
    if weights is None:
        raise UsageError("this model has no attention from target to source, so it has no alignments")
    matrices = dict(zip(said, weights, strict=True))
    said_before = translator.tokenizers.source.encode(translator.prefix) if translator.prefix else []
    skipped = len(aligned(translator.tokenizers, said_before, [], None).source_words)  # words of the prefix
    lines, place = [], 0
    for each in pieces:
        links, source_words, target_words = [], 0, 0
        for _ in each:
            found = aligned(translator.tokenizers, sources[place], targets[place], matrices.get(place))
            links += [f"{s - skipped + source_words}-{t + target_words}" for s, t in found.links if s >= skipped]
            source_words += len(found.source_words) - skipped
            target_words += len(found.target_words)
            place += 1
        lines.append(" ".join(links))
    return lines


def _pieces(translator: Translator, text: str, translation: Translation) -> list[tuple[str, Translation]]:
    """Returns the pieces that were translated by themselves; none if the text is another one's."""
    parts = translation.sentences or (translation,)
    cut = translator.pieces(text, len(parts) > 1)
    sources = [piece.text for piece in cut if piece.text]
    return list(zip(sources, parts, strict=True)) if len(sources) == len(parts) else []


def aligned(
    tokenizers: TokenizerPair, source: Sequence[int], target: Sequence[int], weights: Floats | None
) -> Alignment:
    """Computes links between words from weights between tokens, (T, S), both without end of sentence.

    An empty target has no weights.
    """
    rows, columns = Reading.of(tokenizers.target, [*target, EOS]), Reading.of(tokenizers.source, [*source, EOS])
    padded = np.zeros((1, 1, len(target) + 1, len(source) + 1), dtype=np.float32)
    if weights is not None:
        padded[0, 0, :-1, :-1] = weights
    panel = Panel("cross", "Cross-attention", padded, rows.labels, columns.labels, "target", "source")
    return align(panel.merged(rows.groups, rows.words, columns.groups, columns.words))
