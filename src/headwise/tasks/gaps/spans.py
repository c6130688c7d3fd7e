"""Gaps of several tokens, each behind a sentinel, that a decoder fills in turn (T5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwise.bundle.directory import Bundle
from headwise.config.schema import Recipe
from headwise.errors import RecipeError, UsageError
from headwise.evaluation.contamination import seen_in_training
from headwise.tasks.gaps.interface import Gaps
from headwise.tasks.interface import Evaluated, OnProgress
from headwise.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from headwise.data.spans import SpanBatches
    from headwise.data.store import Store
    from headwise.look.capture import Look
    from headwise.tasks.span_filler import SpanFiller

SENTINELS = tuple(f"<extra_id_{number}>" for number in range(100))


class SpanGaps(Gaps):
    """Spans. The network is the same whatever it was trained for."""

    decodes = True
    any_task = True

    def special_tokens(self, recipe: Recipe) -> tuple[str, ...]:
        return SENTINELS[::-1]  # from the top of the vocabulary, as in published models

    def check(self, recipe: Recipe) -> None:
        if recipe.gaps.whole_words:
            raise RecipeError("gaps.whole_words is for single tokens: this family hides spans (gaps.mean_span)")

    def batches(
        self, store: Store, recipe: Recipe, tokenizer: Tokenizer, max_length: int | None, *,
        rank: int = 0, world: int = 1, shuffle: bool = True,
    ) -> SpanBatches:  # fmt: skip
        from headwise.data.spans import Corruption, SpanBatches

        rule = Corruption(sentinels(tokenizer), recipe.training.seed, recipe.gaps.share, recipe.gaps.mean_span)
        return SpanBatches(
            store, recipe.training.batch_tokens, rule, longest=max_length, shuffle=shuffle, rank=rank, world=world
        )

    def open(self, bundle: Bundle, tokenizer: Tokenizer, engine: str, precision: str, device: str) -> SpanFiller:
        from headwise.bundle.weights import load_model
        from headwise.decoding.torch_engine import TorchEngine
        from headwise.tasks.span_filler import SpanFiller

        if engine == "ctranslate2":
            raise UsageError("the ctranslate2 engine does not fill gaps; use --engine torch")
        known = sentinels(tokenizer)
        return SpanFiller(bundle, tokenizer, TorchEngine(load_model(bundle, device), frozen=True), known)

    def evaluate(
        self, bundle: Bundle, tokenizer: Tokenizer, lines: list[str], stride: int, on_progress: OnProgress | None
    ) -> Evaluated:
        from dataclasses import replace

        from headwise.bundle.weights import load_model
        from headwise.data.spans import Corruption
        from headwise.evaluation.span_tokens import span_scores

        if stride:
            raise UsageError("--stride is for models that fill single tokens; this one fills spans")
        found = span_scores(load_model(bundle), tokenizer, lines, Corruption(sentinels(tokenizer)), on_progress)
        return replace(found, overlap=seen_in_training(bundle.card, "text", lines))

    def look(self, opened: Any, text: str) -> Look:
        from headwise.look.capture import look_at_translation
        from headwise.text.tokenizer import TokenizerPair

        source, target = opened.best(text)
        return look_at_translation(opened.network, TokenizerPair.one(opened.tokenizer), source, target)


GAPS = SpanGaps()


def sentinels(tokenizer: Tokenizer) -> tuple[int, ...]:
    """The ids of those sentinels that a tokenizer has, in order."""
    found = [tokenizer.find(name) for name in SENTINELS]
    known = tuple(token for token in found if token is not None)
    if not known or found[0] is None:
        raise UsageError(f"the model's tokenizer has no token '{SENTINELS[0]}': it was not trained to fill gaps")
    return known
