"""Learns the vocabulary of each kind of tokenizer; headwise.text.tokenizer explains how they split text.

All ties are broken here by a fixed rule, because the library breaks some of them at random.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, cast

import numpy as np
import tokenizers
from numpy.typing import NDArray
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers

from headwise.config import schema
from headwise.errors import DataError, RecipeError, VocabularyTooLarge
from headwise.text.unigram import train as train_unigram

PAD, UNK, BOS, EOS = range(4)
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
BYTES = tuple(f"<0x{value:02X}>" for value in range(256))
RESERVED = len(SPECIAL) + len(BYTES)  # the smallest vocabulary that can spell everything

NORMALISATIONS: dict[str, list[Any]] = {"none": [], "nfc": [normalizers.NFC()], "nfkc": [normalizers.NFKC()]}
RUNS = r" ?[\p{L}\p{M}]+| ?\p{N}| ?[^\s\p{L}\p{M}\p{N}]+|\s"
LONGEST_PIECE = 16  # characters, as in SentencePiece: longer pieces are whole phrases that never recur
# A word that spells a special token, also one of a task's own; `word` reads it as unknown.
SPELT_SPECIAL = r"(?<!\S)<(?:pad|s|/s|mask|extra_id_\d+)>(?!\S)"
SPELT_SPECIAL_1 = r"(?<!\S)<(?:pad|s|/s)>(?!\S)"  # of older files
MASK = "<mask>"  # stands for a token that is to be filled in
_OF_A_TASK = re.compile(r"<(?:mask|extra_id_\d+)>")
_CHUNK = 10_000  # texts joined for one call of the library


def train(texts: list[str], settings: schema.Tokenizer, extra: Sequence[str] = ()) -> tokenizers.Tokenizer:
    """Trains the library's tokenizer on `texts`; equal texts and settings give equal tokenizers.

    `extra` are special tokens that a task needs, such as MASK. They are the last of the vocabulary and never text.
    """
    if not any(text.strip() for text in texts):
        raise DataError("there is no text to train a tokenizer on; check data.source, data.target or data.text")
    reserved = RESERVED + len(extra)
    if settings.kind in ("bpe", "unigram", "char") and settings.size <= reserved:
        raise RecipeError(
            f"tokenizer.size = {settings.size} is too small: {settings.kind} has {reserved} special tokens and bytes "
            f"before its first piece; set it to {reserved + 40} or more"
        )
    room = settings.model_copy(update={"size": settings.size - len(extra)})
    trained = _with_extra(_TRAINERS[settings.kind](texts, room), extra)
    most = trained.get_vocab_size()
    if settings.kind in ("bpe", "unigram") and most < settings.size:
        raise VocabularyTooLarge(
            f"tokenizer.size = {settings.size} is more than this corpus allows: only {most} tokens occur twice; "
            f"set tokenizer.size to {most} or less",
            most,
        )
    return trained


def is_extra(piece: str) -> bool:
    """Whether a token is a special one of some task."""
    return _OF_A_TASK.fullmatch(piece) is not None


def normaliser(name: str) -> normalizers.Normalizer:
    return normalizers.Sequence(NORMALISATIONS[name])


def in_runs(model: models.Model, normalisation: str) -> tokenizers.Tokenizer:
    """Builds a tokenizer with this model that splits text into runs first."""
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence([normaliser(normalisation), normalizers.Prepend(" ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(RUNS), "isolated")
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return tokenizer


def _characters(alphabet: Sequence[str], normalisation: str) -> tokenizers.Tokenizer:
    """Builds a tokenizer of characters, as a BPE model without merges; unknown characters become bytes."""
    vocabulary = {piece: number for number, piece in enumerate((*SPECIAL, *BYTES, *alphabet))}
    tokenizer = tokenizers.Tokenizer(models.BPE(vocabulary, [], unk_token="<unk>", byte_fallback=True))
    tokenizer.normalizer = normaliser(normalisation)
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    return tokenizer


# ---- training


def _train_bpe(texts: list[str], settings: schema.Tokenizer) -> tokenizers.Tokenizer:
    trained = in_runs(models.BPE(unk_token="<unk>", byte_fallback=True), settings.normalisation)
    alphabet = _alphabet(texts, settings)
    # The library breaks ties between equally frequent characters at random, so the alphabet is chosen here; the limit
    # keeps the library from adding to it.
    trainer = trainers.BpeTrainer(
        vocab_size=settings.size,
        min_frequency=2,
        special_tokens=[*SPECIAL, *BYTES],
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        max_token_length=LONGEST_PIECE,
        show_progress=False,
    )
    trained.train_from_iterator(texts, trainer, length=len(texts))
    return _without_added_tokens(trained)


def _train_unigram(texts: list[str], settings: schema.Tokenizer) -> tokenizers.Tokenizer:
    splitter = in_runs(models.BPE(), settings.normalisation)
    words = _count_words(texts, splitter)
    pieces = train_unigram(words, _alphabet(texts, settings), settings.size - RESERVED, LONGEST_PIECE)
    # A special or byte piece never matches text (it would span a run boundary), so its score does not matter.
    scored = [(piece, 0.0) for piece in (*SPECIAL, *BYTES)] + pieces
    return in_runs(models.Unigram(scored, unk_id=UNK, byte_fallback=True), settings.normalisation)


def _train_word(texts: list[str], settings: schema.Tokenizer) -> tokenizers.Tokenizer:
    normalised = normaliser(settings.normalisation)
    counts: Counter[str] = Counter()
    for chunk in _joined(texts):
        counts.update(normalised.normalize_str(chunk).split())
    for name in SPECIAL:
        del counts[name]
    ranked = sorted(counts, key=lambda word: (-counts[word], word))[: max(0, settings.size - len(SPECIAL))]
    vocabulary = {piece: number for number, piece in enumerate((*SPECIAL, *ranked))}
    tokenizer = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    unknown = normalizers.Replace(Regex(SPELT_SPECIAL), "<unk>")
    tokenizer.normalizer = normalizers.Sequence([normalised, unknown])
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tokenizer


def _train_char(texts: list[str], settings: schema.Tokenizer) -> tokenizers.Tokenizer:
    counts = _count_characters(texts, settings.normalisation)
    return _characters(_ranked(counts)[: settings.size - RESERVED], settings.normalisation)


def _train_byte(texts: list[str], settings: schema.Tokenizer) -> tokenizers.Tokenizer:
    return _characters([], settings.normalisation)


def _alphabet(texts: list[str], settings: schema.Tokenizer) -> list[str]:
    """Lists the characters that get a piece: seen twice, and at most half of the room; the rest is for longer ones."""
    counts = _count_characters(texts, settings.normalisation)
    counts[" "] += len(texts)  # the space that is put before each text
    seen = [character for character in _ranked(counts) if counts[character] > 1]
    return seen[: max(1, (settings.size - RESERVED) // 2)]


def _ranked(counts: Counter[str]) -> list[str]:
    return sorted(counts, key=lambda character: (-counts[character], character))


def _count_characters(texts: list[str], normalisation: str) -> Counter[str]:
    normalised = normaliser(normalisation)
    totals = np.zeros(0x110000, dtype=np.int64)
    for chunk in _joined(texts):
        points = np.frombuffer(normalised.normalize_str(chunk).encode("utf-32-le"), dtype=np.uint32)
        counts: NDArray[np.int64] = np.bincount(points)
        totals[: len(counts)] += counts
    totals[ord("\n")] = 0  # line breaks only join the texts
    return Counter({chr(point): int(totals[point]) for point in np.flatnonzero(totals)})


def _count_words(texts: list[str], splitter: tokenizers.Tokenizer) -> Counter[str]:
    normalised, split = cast("Any", splitter.normalizer), cast("Any", splitter.pre_tokenizer)
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(word for word, _ in split.pre_tokenize_str(normalised.normalize_str(text)))
    return counts


def _joined(texts: list[str]) -> Iterator[str]:
    lines = iter(texts)
    while chunk := list(islice(lines, _CHUNK)):
        yield "\n".join(chunk)


def _with_extra(trained: tokenizers.Tokenizer, extra: Sequence[str]) -> tokenizers.Tokenizer:
    """Appends tokens that no text is split into: no merge makes them, and they would span the boundary of a run."""
    if not extra:
        return trained
    parts = json.loads(trained.to_str())
    pieces, size = parts["model"]["vocab"], trained.get_vocab_size()
    if isinstance(pieces, list):
        lowest = min(score for _, score in pieces)
        pieces += [[name, lowest] for name in extra]
    else:
        pieces.update({name: size + number for number, name in enumerate(extra)})
    return tokenizers.Tokenizer.from_str(json.dumps(parts))


def _without_added_tokens(trained: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    parts = json.loads(trained.to_str())
    parts["added_tokens"] = []
    return tokenizers.Tokenizer.from_str(json.dumps(parts))


_TRAINERS = {
    "bpe": _train_bpe,
    "unigram": _train_unigram,
    "word": _train_word,
    "char": _train_char,
    "byte": _train_byte,
}
