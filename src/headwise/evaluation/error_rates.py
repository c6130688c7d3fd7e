"""Word and character error rates by jiwer, with the normalisation in the signature, and the words that went wrong."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Literal

from headwise.errors import DataError, UsageError

Normalisation = Literal["plain", "none"]
NORMALISATIONS: tuple[Normalisation, ...] = ("plain", "none")
_STEPS = {"plain": "nfkc+lower+no-punctuation", "none": "none"}
_APOSTROPHES = re.compile("[\u2018\u2019\u02bc\u00b4`]")


@dataclass(frozen=True)
class ErrorRates:
    """Errors per 100 words and characters of the references. More than 100 are possible: insertions count too."""

    wer: float
    cer: float
    words: int  # of the references
    substitutions: int
    deletions: int
    insertions: int
    sentences: int
    wrong_sentences: int
    signature: str
    wrong: Counter[tuple[str, str]] = field(default_factory=Counter)  # (said, heard); '' is nothing

    def lines(self, most: int = 10) -> list[str]:
        shown = [
            f"{times:5,} × {said or '(nothing)'} → {heard or '(nothing)'}"
            for (said, heard), times in self.wrong.most_common(most)
        ]
        return [
            f"WER    {self.wer:6.2f}  {self.signature}",
            f"CER    {self.cer:6.2f}",
            f"{self.words:,} words: {self.substitutions:,} substituted, {self.deletions:,} deleted, "
            f"{self.insertions:,} inserted; {self.wrong_sentences:,} of {self.sentences:,} recordings have an error",
            *(["", "most frequent errors:", *shown] if shown else []),
        ]

    def as_dict(self, most: int = 100) -> dict[str, Any]:
        return {
            "wer": self.wer, "cer": self.cer, "words": self.words, "substitutions": self.substitutions,
            "deletions": self.deletions, "insertions": self.insertions, "recordings": self.sentences,
            "recordings_with_errors": self.wrong_sentences, "signature": self.signature,
            "wrong": [
                {"said": said, "heard": heard, "times": times}
                for (said, heard), times in self.wrong.most_common(most)
            ],
        }  # fmt: skip


def error_rates(
    references: Sequence[str], hypotheses: Sequence[str], normalisation: Normalisation = "plain"
) -> ErrorRates:
    """Compares what was heard with what was said, sentence by sentence."""
    import jiwer

    if len(references) != len(hypotheses):
        raise DataError(f"there are {len(references):,} references, but {len(hypotheses):,} transcripts")
    if normalisation not in NORMALISATIONS:
        raise UsageError(f"unknown normalisation '{normalisation}'; choose one of {', '.join(NORMALISATIONS)}")
    said, heard = ([normalised(text, normalisation) for text in texts] for texts in (references, hypotheses))
    if not any(said):
        raise DataError("the references have no words; there is nothing to compare with")
    words, characters = jiwer.process_words(said, heard), jiwer.process_characters(said, heard)
    return ErrorRates(
        100 * words.wer, 100 * characters.cer, words.hits + words.substitutions + words.deletions,
        words.substitutions, words.deletions, words.insertions, len(said),
        sum(one != other for one, other in zip(said, heard, strict=True)),
        f"norm:{_STEPS[normalisation]}|version:jiwer-{version('jiwer')}", _wrong_words(words),
    )  # fmt: skip


def normalised(text: str, normalisation: Normalisation = "plain") -> str:
    """`plain`: without case and punctuation, but with apostrophes inside of words; `none`: spaces alone."""
    if normalisation == "plain":
        text = _APOSTROPHES.sub("'", unicodedata.normalize("NFKC", text).lower())
        text = re.sub(r"(?<!\w)'|'(?!\w)", " ", text)
        text = "".join(
            " " if unicodedata.category(c)[0] in "PSZC" and c != "'" else c for c in text
        )  # fmt: skip
    return " ".join(text.split())


def _wrong_words(words: Any) -> Counter[tuple[str, str]]:
    """Pairs of words, of which one may be nothing; a longer stretch is taken word by word."""
    wrong: Counter[tuple[str, str]] = Counter()
    for said, heard, chunks in zip(words.references, words.hypotheses, words.alignments, strict=True):
        for chunk in chunks:
            if chunk.type == "equal":
                continue
            one, other = said[chunk.ref_start_idx : chunk.ref_end_idx], heard[chunk.hyp_start_idx : chunk.hyp_end_idx]
            for place in range(max(len(one), len(other))):
                pair = one[place] if place < len(one) else "", other[place] if place < len(other) else ""
                wrong[pair] += 1
    return wrong
