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
from headwise.text import corpus
from headwise.text.corpus import format_of
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
    precision: str = "float32"  # of the ctranslate2 engine
    split_sentences: bool = True
    fields: Sequence[str] = ()  # of a table: source and reference, and perhaps the prefix of each source
    prefix: str | None = None  # what the model is told to do, or
    languages: Sequence[str] = ()  # which of its directions is meant

    @property
    def is_table(self) -> bool:
        """Whether the source is a file that can hold both sides."""
        return bool(self.source) and format_of(self.source) != "text"

    def __post_init__(self) -> None:
        given = bool(self.reference) or self.is_table
        _check(given, "nothing to compare with: give --reference FILE (or --text for a language model)")
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
    sources, references, prefixes = _read(asked)
    lines = sources if asked.bundle else read_lines(asked.hypothesis)
    measure = asked.source if asked.bundle else asked.hypothesis
    references += [_aligned(file, len(lines), measure) for file in asked.reference]
    against = _aligned(asked.against, len(lines), measure) if asked.against else None
    language, made, seen = asked.language, "", None
    if asked.bundle:
        lines, made, languages = _translated(asked.bundle, sources, asked, on_progress, prefixes)
        seen = seen_in_training(asked.bundle.card, "source", sources)
        language = language or (languages[1] if len(languages) > 1 else "")
    if asked.against_model:
        against, *_ = _translated(open_bundle(asked.against_model), sources, asked, on_progress, prefixes)
    scores = corpus_scores(lines, *references, language=language)
    comparisons = []
    if against is not None:
        comparisons = compare(against, lines, *references, language=language, test=asked.test)
    return TranslationScores(scores, comparisons, made, seen, lines)


def _read(asked: EvaluateOptions) -> tuple[list[str], list[list[str]], list[str]]:
    """Reads the source, and its reference and its prefixes where a table holds them."""
    if not asked.source:
        return [], [], []
    if not asked.is_table or asked.reference:
        field = asked.fields[0] if asked.fields else "source" if format_of(asked.source) in ("csv", "jsonl") else None
        return [line.text for line in corpus.read_lines(asked.source, field=field)], [], []
    pairs = list(corpus.read_pairs(asked.source, fields=asked.fields))
    prefixes = [pair.prefix for pair in pairs] if len(asked.fields) == 3 else []
    return [pair.source for pair in pairs], [[pair.target for pair in pairs]], prefixes


def _aligned(file: str, count: int, measure: str) -> list[str]:
    lines = read_lines(file)
    if len(lines) != count:
        problem = (
            f"has {len(lines):,} lines but {measure} has {count:,}; line n of one must belong to line n of the other"
        )
        raise DataError(problem, file=file)
    return lines


def _translated(
    bundle: Bundle, sources: Sequence[str], asked: EvaluateOptions, on_progress: OnProgress | None,
    prefixes: Sequence[str] = (),
) -> tuple[list[str], str, tuple[str, ...]]:  # fmt: skip
    """Returns the translations, the decoding options and the languages. `prefixes` are those of the sources."""
    from headwise.tasks.prefixes import parts_of
    from headwise.tasks.translate import TASK, require_translator

    require_translator(bundle)
    # A model to compare with may know no prefixes: it then gets none.
    told = bundle is asked.bundle or bool(parts_of(bundle))
    translator = TASK.open(
        bundle, asked.engine, precision=asked.precision, scores="none",
        prefix=("" if prefixes else asked.prefix) if told else None,
        languages=(asked.languages if told else ()) or ("", ""),
    )  # fmt: skip
    options = translator.options(beam=asked.beam)
    translations: list[str] = []
    for start in range(0, len(sources), _CHUNK):
        answers = translator.translate(
            sources[start : start + _CHUNK], beam=asked.beam, split_sentences=asked.split_sentences,
            source_prefix=prefixes[start : start + _CHUNK] if prefixes and told else None,
        )  # fmt: skip
        translations += [" ".join(answer.text.split("\n")) for answer in answers]
        if on_progress is not None:
            on_progress(len(answers))
    engine = translator.engine.name
    made = {
        "beam": options.beam,
        "length_penalty": f"{options.length_penalty:g}",
        "engine": engine,
        "precision": "float32" if engine == "torch" else asked.precision,
        "split": "sentences" if asked.split_sentences else "no",
        **({"prefix": translator.prefix.strip()} if translator.prefix else {}),
    }
    described = "|".join(f"{name}:{value}" for name, value in made.items())
    return translations, described, translator.bundle.languages


def _check(fine: bool, problem: str) -> None:
    if not fine:
        raise UsageError(problem)
