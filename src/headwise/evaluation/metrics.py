"""Computes BLEU, chrF and TER with sacreBLEU: the same numbers as its command line, each with its signature."""

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
    """A score with its signature. `better` is 1 if higher is better, -1 if lower is (TER)."""

    name: str
    value: float
    signature: str
    better: int = 1

    def __str__(self) -> str:
        return f"{self.name} {self.value:.2f}  {self.signature}"


def bleu(hypotheses: Sequence[str], *references: Sequence[str], language: str = "") -> Score:
    """Computes corpus BLEU (Papineni et al. 2002) against aligned references; `language` is that of the target."""
    return corpus_scores(hypotheses, *references, language=language, metrics=("bleu",))[0]


def chrf(hypotheses: Sequence[str], *references: Sequence[str], language: str = "") -> Score:
    """Computes corpus chrF2 (Popović 2015): n-grams of characters, so no tokenizer is needed."""
    return corpus_scores(hypotheses, *references, language=language, metrics=("chrf",))[0]


def ter(hypotheses: Sequence[str], *references: Sequence[str], language: str = "") -> Score:
    """Computes corpus TER (Snover et al. 2006): edits per word of the reference. Lower is better."""
    return corpus_scores(hypotheses, *references, language=language, metrics=("ter",))[0]


def corpus_scores(
    hypotheses: Sequence[str], *references: Sequence[str], language: str = "", metrics: Sequence[str] = METRICS
) -> list[Score]:
    """Computes one score per metric, in the order of `metrics`."""
    check_aligned(hypotheses, references)
    scores = []
    for name, metric in build_metrics(language, metrics).items():
        result = metric.corpus_score(list(hypotheses), [list(reference) for reference in references])
        scores.append(Score(result.name, float(result.score), metric.get_signature().format(), direction(name)))
    return scores


def build_metrics(language: str = "", names: Sequence[str] = METRICS) -> Mapping[str, Any]:
    """Builds sacreBLEU's metric objects for a target language."""
    split = base_language(language) in _SPLIT_BY_TER
    builders: dict[str, Callable[[], Any]] = {
        # force: scores text that looks tokenized as it is, without a warning in the middle of a training log.
        "bleu": lambda: BLEU(tokenize=bleu_tokenizer(language), force=True),
        "chrf": CHRF,
        "ter": lambda: TER(normalized=split, asian_support=split),
    }
    return {name: builders[name]() for name in names}


def bleu_tokenizer(language: str) -> str:
    """Chooses sacreBLEU's tokenizer for a target language: 13a (the WMT standard) except for Chinese and Japanese."""
    base = base_language(language)
    if base == "zh":
        return "zh"
    if base == "ja":
        return "ja-mecab" if importlib.util.find_spec("MeCab") and importlib.util.find_spec("ipadic") else "char"
    return "13a"


def direction(metric: str) -> int:
    """Returns 1 if a higher value of the metric is better, -1 if a lower one is."""
    return -1 if metric == "ter" else 1


def check_aligned(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    """Refuses references that are missing, or whose number of lines differs from the hypotheses."""
    if not references:
        raise DataError("there is no reference to score against; give at least one")
    for reference in references:
        if len(reference) != len(hypotheses):
            raise DataError(
                f"{len(hypotheses):,} translations but {len(reference):,} reference lines; "
                "line n of one must belong to line n of the other"
            )
    if not hypotheses:
        raise DataError("there is nothing to score: the translations have no lines")
