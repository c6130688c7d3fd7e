"""Evaluates translations: BLEU, chrF and TER of a model or an output, and the difference between two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from headwise.bundle.directory import Bundle, open_bundle
from headwise.errors import DataError, UsageError
from headwise.evaluation.contamination import Overlap, seen_in_training
from headwise.evaluation.metrics import Score, corpus_scores
from headwise.evaluation.significance import Comparison, compare
from headwise.tasks.interface import OnProgress
from headwise.text.lines import read_lines

_CHUNK = 1024  # lines translated in one call


@dataclass(frozen=True)
class EvaluateOptions:
    """What to score (a model's translations of `source`, or the output in `hypothesis`), and how."""

    reference: Sequence[str] = ()  # files
    bundle: Bundle | None = None
    source: str = ""
    hypothesis: str = ""
    against: str = ""  # another output
    against_model: str = ""
    test: str = "bootstrap"
    language: str = ""  # of the target; a model knows its own
    beam: int | None = None
    engine: str = "auto"

    def __post_init__(self) -> None:
        _check(bool(self.reference), "nothing to compare with: give --reference FILE (or --text for a language model)")
        modelled = self.bundle is not None
        _check(modelled != bool(self.hypothesis), "give --model DIR with --source FILE, or --hypothesis FILE")
        _check(bool(self.source) or not (self.bundle or self.against_model), "a model needs --source FILE to translate")
        _check(not (self.against and self.against_model), "give --against or --against-model, not both")


@dataclass(frozen=True)
class TranslationScores:
    """What `headwise evaluate` reports of translations."""

    scores: list[Score]
    comparisons: list[Comparison] = field(default_factory=list)
    decoding: str = ""  # the decoding options of the model; empty for a given output
    overlap: Overlap | None = None  # None: the card has no fingerprints, or no source is known
    translations: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        rows = [f"{score.name:<6} {score.value:6.2f}  {score.signature}" for score in self.scores]
        if self.decoding:
            rows.append(f"decoded with {self.decoding}")
        for one in self.comparisons:
            verdict = "significant" if one.significant else "not significant"
            rows.append(
                f"{one.metric:<6} {one.baseline:6.2f} → {one.system:6.2f} ({one.difference:+.2f})  "
                f"p = {one.p_value:.4f}, {verdict} at 5 %  {one.signature}"
            )
        return rows

    def as_dict(self) -> dict[str, Any]:
        return {
            "scores": [asdict(score) for score in self.scores],
            "decoding": self.decoding,
            "comparisons": [
                {**asdict(one), "difference": one.difference, "significant": one.significant}
                for one in self.comparisons
            ],
            "overlap": None if self.overlap is None else self.overlap.as_dict(),
        }


def evaluate_translation(asked: EvaluateOptions, on_progress: OnProgress | None = None) -> TranslationScores:
    """Scores a model or an output, and compares it with another one."""
    sources = read_lines(asked.source) if asked.source else []
    lines = sources if asked.bundle else read_lines(asked.hypothesis)
    measure = asked.source if asked.bundle else asked.hypothesis
    references = [_aligned(file, len(lines), measure) for file in asked.reference]
    against = _aligned(asked.against, len(lines), measure) if asked.against else None
    language, made, seen = asked.language, "", None
    if asked.bundle:
        lines, made = _translated(asked.bundle, sources, asked, on_progress)
        seen = seen_in_training(asked.bundle.card, "source", sources)
        language = language or (asked.bundle.languages[1] if len(asked.bundle.languages) > 1 else "")
    if asked.against_model:
        against, _ = _translated(open_bundle(asked.against_model), sources, asked, on_progress)
    scores = corpus_scores(lines, *references, language=language)
    comparisons = []
    if against is not None:
        comparisons = compare(against, lines, *references, language=language, test=asked.test)
    return TranslationScores(scores, comparisons, made, seen, lines)


def _aligned(file: str, count: int, measure: str) -> list[str]:
    lines = read_lines(file)
    if len(lines) != count:
        problem = (
            f"has {len(lines):,} lines but {measure} has {count:,}; line n of one must belong to line n of the other"
        )
        raise DataError(problem, file=file)
    return lines


def _translated(
    bundle: Bundle, sources: Sequence[str], asked: EvaluateOptions, on_progress: OnProgress | None
) -> tuple[list[str], str]:
    """Returns the translations and the decoding options. The fast engine computes in float32 here."""
    from headwise.tasks.translate import TASK, require_translator

    require_translator(bundle)
    translator = TASK.open(bundle, asked.engine, precision="float32", scores="none")
    options = translator.options(beam=asked.beam)
    translations: list[str] = []
    for start in range(0, len(sources), _CHUNK):
        answers = translator.translate(sources[start : start + _CHUNK], beam=asked.beam)
        translations += [" ".join(answer.text.split("\n")) for answer in answers]
        if on_progress is not None:
            on_progress(len(answers))
    made = f"beam:{options.beam}|length_penalty:{options.length_penalty:g}|engine:{translator.engine.name}"
    return translations, made


def _check(fine: bool, problem: str) -> None:
    if not fine:
        raise UsageError(problem)
