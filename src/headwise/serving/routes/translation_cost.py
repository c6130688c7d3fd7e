"""What a translation costs, estimated before it is begun: tokens × hypotheses, summed over all sentences.

The phrases that a translation must contain count as tokens. On torch a search can be stopped at each step. The fast
engine cannot be stopped within a sentence, so a sentence that costs more than FAST_COST is not given to it: it is
decoded on torch, or cut where there is only the fast engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from headwise.decoding.glossary import glossary_terms, protected_spans
from headwise.decoding.sentences import Sentence
from headwise.serving.errors import RequestError
from headwise.tasks.translate import FAST_COST, ServedTranslator, too_slow

# Of all sentences of a request together, on the fast engine and on torch. Models of the size of those that come with
# Headwise take about half a minute for it on one core.
MOST_FAST, MOST_SLOW = 150_000, 60_000
EXTRA_ROWS = 8  # hypotheses in addition to the beam, if phrases are required


@dataclass(frozen=True)
class TranslationSettings:
    """How texts are to be translated; sentences with equal settings may share a batch."""

    beam: int | None = None
    alternatives: int = 0
    glossary: tuple[tuple[str, str], ...] = ()
    protect: bool = False
    details: bool = False

    @property
    def constrained(self) -> bool:
        """Tells whether the translation must contain certain words: only torch can do that."""
        return bool(self.glossary) or self.protect

    @property
    def unconstrained(self) -> TranslationSettings:
        """The same for a sentence that has none of these words in it."""
        return replace(self, glossary=(), protect=False)


class PlannedSentence(NamedTuple):
    """A sentence that is not empty."""

    text: str
    tokens: int  # that the translation is expected to have at most, unless the model goes astray
    rows: int  # hypotheses
    slow: bool  # whether it needs torch

    @property
    def cost(self) -> int:
        return self.tokens * self.rows


@dataclass(frozen=True)
class Plan:
    """Some texts, split into sentences."""

    sentences: list[list[Sentence]]
    planned: list[PlannedSentence]  # in order, those that are not empty
    max_extra: int  # steps that a sentence may take in addition to its tokens

    def size(self, place: int) -> int:
        """Returns the decoding steps × hypotheses that a sentence may take."""
        return (self.planned[place].tokens + self.max_extra) * self.planned[place].rows


def plan_translation(served: ServedTranslator, texts: Sequence[str], settings: TranslationSettings) -> Plan:
    """Splits texts into sentences; raises a 413 if they cost more than a request may."""
    translator = served.translator
    options = translator.options(beam=settings.beam, n_best=1 + settings.alternatives)
    longest = None if served.has_torch else max(1, FAST_COST // (options.beam + 1))
    sentences = [translator.pieces(text, True, longest) for text in texts]

    def planned(text: str) -> PlannedSentence:
        tokens, required = translator.length(text), _required(text, settings) if settings.constrained else 0
        if required:
            return PlannedSentence(text, tokens + required, options.beam + EXTRA_ROWS, True)
        slow = served.only_torch or (served.has_torch and too_slow(tokens, options.beam))
        return PlannedSentence(text, tokens, options.beam, slow)

    plan = Plan(sentences, [planned(one.text) for each in sentences for one in each if one.text], options.max_extra)
    _check([one for one in plan.planned if not one.slow], MOST_FAST, "")
    _check([one for one in plan.planned if one.slow], MOST_SLOW, " with required phrases or long sentences")
    return plan


def _required(text: str, settings: TranslationSettings) -> int:
    """Returns an upper bound of the tokens that the translation must contain: their characters."""
    terms = glossary_terms(text, dict(settings.glossary)) + (protected_spans(text) if settings.protect else [])
    return sum(len(term.text) for term in terms)


def _check(planned: Sequence[PlannedSentence], most: int, where: str) -> None:
    cost = sum(one.cost for one in planned)
    if cost > most:
        tokens, rows = sum(one.tokens for one in planned), max(one.rows for one in planned)
        raise RequestError(
            413,
            f"this would cost {cost:,} ({tokens:,} tokens in {len(planned)} sentences × up to {rows} hypotheses), but "
            f"a request may cost {most:,}{where}: send less at once, or use a smaller beam",
        )
