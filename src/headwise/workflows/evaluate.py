"""How good is a model or an output: scores with signatures, paired significance, and test lines seen in training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headwise.bundle.directory import Bundle, open_bundle
from headwise.errors import DataError, UsageError
from headwise.evaluation.contamination import Overlap, overlap
from headwise.evaluation.metrics import Score, corpus_scores
from headwise.evaluation.perplexity import Perplexity
from headwise.evaluation.significance import Comparison, compare
from headwise.text.lines import line_blocks
from headwise.workflows.translate import CHUNK, Wanted, open_translator, translate_lines

OnProgress = Callable[[int], None]


@dataclass(frozen=True)
class Question:
    """What is scored: a model's translations of `source`, or the output in `hypothesis`; and what with."""

    references: Sequence[str]  # files
    model: str = ""
    source: str = ""
    hypothesis: str = ""
    against: str = ""  # another output
    against_model: str = ""
    test: str = "bootstrap"
    language: str = ""  # of the target; a model knows its own
    beam: int | None = None
    engine: str = "auto"

    def __post_init__(self) -> None:
        _check(bool(self.references), "nothing to compare with: give --reference FILE (or --text for a language model)")
        _check(bool(self.model) != bool(self.hypothesis), "give --model DIR with --source FILE, or --hypothesis FILE")
        _check(bool(self.source) or not (self.model or self.against_model), "a model needs --source FILE to translate")
        _check(not (self.against and self.against_model), "give --against or --against-model, not both")


@dataclass(frozen=True)
class Evaluation:
    """What `headwise evaluate` reports."""

    scores: list[Score]
    comparisons: list[Comparison] = field(default_factory=list)
    decoding: str = ""  # how the translations were made; empty for a given output
    overlap: Overlap | None = None  # None: the card has no fingerprints, or no source is known
    translations: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class TextEvaluation:
    """The same for a language model."""

    perplexity: Perplexity
    overlap: Overlap | None = None


def evaluate(question: Question, on_progress: OnProgress | None = None) -> Evaluation:
    """Scores of a model or an output, and its differences from another one."""
    sources = read_lines(question.source) if question.source else []
    lines = sources if question.model else read_lines(question.hypothesis)
    measure = question.source if question.model else question.hypothesis
    references = [_aligned(file, len(lines), measure) for file in question.references]
    against = _aligned(question.against, len(lines), measure) if question.against else None
    language, made, seen = question.language, "", None
    if question.model:
        lines, made, bundle = _translated(question.model, sources, question, on_progress)
        seen = seen_in_training(bundle, "source", sources)
        language = language or (bundle.languages[1] if len(bundle.languages) > 1 else "")
    if question.against_model:
        against, _, _ = _translated(question.against_model, sources, question, on_progress)
    scores = corpus_scores(lines, *references, language=language)
    comparisons = []
    if against is not None:
        comparisons = compare(against, lines, *references, language=language, test=question.test)
    return Evaluation(scores, comparisons, made, seen, lines)


def read_lines(file: str) -> list[str]:
    return [line for _, lines in line_blocks(file) for line in lines]


def _aligned(file: str, count: int, measure: str) -> list[str]:
    lines = read_lines(file)
    if len(lines) != count:
        problem = (
            f"has {len(lines):,} lines but {measure} has {count:,}; line n of one must belong to line n of the other"
        )
        raise DataError(problem, file=file)
    return lines


def _translated(
    model: str, sources: Sequence[str], question: Question, on_progress: OnProgress | None
) -> tuple[list[str], str, Bundle]:
    """Translations, how they were made, and the model's bundle. The fast engine computes in float32 here."""
    translator = open_translator(model, question.engine, precision="float32", scores="none")
    options = translator.options(beam=question.beam)
    chunks = [sources[start : start + CHUNK] for start in range(0, len(sources), CHUNK)]
    translations: list[str] = []
    for _, answers in translate_lines(translator, chunks, Wanted(beam=question.beam)):
        translations += [" ".join(answer.text.split("\n")) for answer in answers]
        if on_progress is not None:
            on_progress(len(answers))
    made = f"beam:{options.beam}|length_penalty:{options.length_penalty:g}|engine:{translator.engine.name}"
    return translations, made, translator.bundle


def seen_in_training(bundle: Bundle, side: str, lines: Sequence[str]) -> Overlap | None:
    """Test lines that the card's fingerprints know; None where the card has none."""
    data: Any = bundle.card.get("data")
    fingerprints = data.get("fingerprints") if isinstance(data, dict) else None
    sketch = fingerprints.get(side) if isinstance(fingerprints, dict) else None
    return overlap(lines, sketch) if isinstance(sketch, dict) else None


def evaluate_text(
    model: str | Path, file: str, *, stride: int = 0, on_progress: OnProgress | None = None
) -> TextEvaluation:
    """Perplexity of a language model on a text."""
    bundle = open_bundle(model)
    if bundle.family != "lm":
        raise UsageError(
            f"{model} is a '{bundle.family}', no language model; give --source and --reference, not --text"
        )
    from headwise.bundle.weights import open_model
    from headwise.evaluation.language_model import text_perplexity

    _, network, tokenizers = open_model(model)
    lines = read_lines(file)
    found: Any = network
    perplexity = text_perplexity(found, tokenizers.target, lines, stride=stride, on_progress=on_progress)
    return TextEvaluation(perplexity, seen_in_training(bundle, "text", lines))


def _check(fine: bool, problem: str) -> None:
    if not fine:
        raise UsageError(problem)
