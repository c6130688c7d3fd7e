"""BLEU, chrF and TER, by sacreBLEU: the numbers of its command line, each with the signature to compare by."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from headwise.errors import DataError
from headwise.text.languages import base_language

METRICS = ("bleu", "chrf", "ter")
# Of the languages without spaces, those whose text sacreBLEU's TER can split into characters.
_SPLIT_BY_TER = ("zh", "ja")


@dataclass(frozen=True)
class Score:
    """A figure and how it was got. `better` is the direction: 1 where higher is better, -1 where lower is (TER)."""

    name: str
    value: float
    signature: str
    better: int = 1

    def __str__(self) -> str:
        return f"{self.name} {self.value:.2f}  {self.signature}"


def bleu(hypotheses: Sequence[str], *references: Sequence[str], language: str = "") -> Score:
    """Corpus BLEU (Papineni et al. 2002) against one or more aligned references; `language` is the target's."""
    return corpus_scores(hypotheses, *references, language=language, metrics=("bleu",))[0]


def chrf(hypotheses: Sequence[str], *references: Sequence[str], language: str = "") -> Score:
    """Corpus chrF2 (Popović 2015): n-grams of characters, so that no tokenizer is needed."""
    return corpus_scores(hypotheses, *references, language=language, metrics=("chrf",))[0]


def ter(hypotheses: Sequence[str], *references: Sequence[str], language: str = "") -> Score:
    """Corpus TER (Snover et al. 2006): edits, as a share of the reference's words. Lower is better."""
    return corpus_scores(hypotheses, *references, language=language, metrics=("ter",))[0]


def corpus_scores(
    hypotheses: Sequence[str], *references: Sequence[str], language: str = "", metrics: Sequence[str] = METRICS
) -> list[Score]:
    """One score for each of `metrics`, in their order."""
    check_aligned(hypotheses, references)
    scores = []
    for name, metric in build_metrics(language, metrics).items():
        result = metric.corpus_score(list(hypotheses), [list(reference) for reference in references])
        scores.append(Score(result.name, float(result.score), metric.get_signature().format(), direction(name)))
    return scores


def build_metrics(language: str = "", names: Sequence[str] = METRICS) -> Mapping[str, Any]:
    """sacreBLEU's own objects, set up for a target language."""
    split = base_language(language) in _SPLIT_BY_TER
    builders: dict[str, Callable[[], Any]] = {
        # force: text that looks tokenized is scored as it is, without a warning that would break into a training log.
        "bleu": lambda: BLEU(tokenize=bleu_tokenizer(language), force=True),
        "chrf": CHRF,
        "ter": lambda: TER(normalized=split, asian_support=split),
    }
    return {name: builders[name]() for name in names}


def bleu_tokenizer(language: str) -> str:
    """sacreBLEU's tokenizer for a target language: 13a (the WMT standard) wherever words have spaces between them."""
    base = base_language(language)
    if base == "zh":
        return "zh"
    if base == "ja":
        return "ja-mecab" if importlib.util.find_spec("MeCab") and importlib.util.find_spec("ipadic") else "char"
    return "13a"


def direction(metric: str) -> int:
    return -1 if metric == "ter" else 1


def check_aligned(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    if not references:
        raise DataError("there is no reference to score against")
    for reference in references:
        if len(reference) != len(hypotheses):
            raise DataError(
                f"{len(hypotheses):,} translations but {len(reference):,} reference lines; "
                "line n of one must belong to line n of the other"
            )
    if not hypotheses:
        raise DataError("there is nothing to score: no lines")
