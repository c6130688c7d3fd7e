"""Aligns the words of translations with those of their sources by cross-attention, in Moses format: `0-0 1-2`.

Words are separated by spaces; in a script without spaces each token is a word. The attention is the mean over the heads
of the second-to-last decoder layer, computed for the finished translation, with either engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headwise.decoding.engine import AutoEngine
from headwise.decoding.translator import Translation, Translator
from headwise.errors import UsageError
from headwise.look.alignment import Alignment, align
from headwise.look.panels import Floats, Panel
from headwise.look.token_labels import Reading
from headwise.text.tokenizer import BOS, EOS, TokenizerPair

_BATCH = 32


def alignments(translator: Translator, texts: Sequence[str], translations: Sequence[Translation]) -> list[str]:
    """Returns one line per translation, an empty one if there is no text; sentences are aligned one by one."""
    pieces = [_pieces(translator, *pair) for pair in zip(texts, translations, strict=True)]
    flat = [piece for each in pieces for piece in each]
    sources = translator.tokenizers.source.encode_batch([translator.prefix + text for text, _ in flat])
    targets = [list(translation.ids) for _, translation in flat]
    said = [place for place, target in enumerate(targets) if target]
    weights = _attention(translator.engine, [sources[i] for i in said], [targets[i] for i in said])
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


def _attention(engine: Any, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Floats]:
    if engine.name == "ctranslate2":
        fast: Any = engine.fast if isinstance(engine, AutoEngine) else engine
        return [np.array(matrix, dtype=np.float32) for matrix in fast.attention(sources, targets)]
    found: list[Floats] = []
    for start in range(0, len(sources), _BATCH):
        found += _torch_attention(engine.model, sources[start : start + _BATCH], targets[start : start + _BATCH])
    return found


def _torch_attention(model: Any, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Floats]:
    import torch

    from headwise.data.batch import pad
    from headwise.nn import capture_attention
    from headwise.text.ragged import Ragged

    names = model.attention_names().get("cross")
    if not names:
        raise UsageError("this model has no attention from target to source, so it has no alignments")
    name = names[max(0, len(names) - 2)]
    device = next(model.parameters()).device
    lengths = torch.tensor([len(source) + 1 for source in sources], device=device)
    ids, inputs = pad(Ragged.of(sources), end=EOS).to(device), pad(Ragged.of(targets), start=BOS).to(device)
    with torch.inference_mode(), capture_attention(model, lambda module: module == name) as captured:
        model.states(ids, inputs, lengths)
    weights = captured[name][0].mean(dim=1).cpu().numpy()  # (B, T, S)
    return [weights[i, : len(t), : len(s)] for i, (s, t) in enumerate(zip(sources, targets, strict=True))]
