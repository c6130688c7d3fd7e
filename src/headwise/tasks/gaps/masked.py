"""Gaps of one token each, hidden by a mask, that an encoder fills in their place (BERT)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwise.bundle.assets import Assets
from headwise.bundle.directory import Bundle
from headwise.config.schema import Recipe
from headwise.errors import UsageError, WorkFailed
from headwise.evaluation.contamination import seen_in_training
from headwise.tasks.fast_encoders import token_encoder
from headwise.tasks.gaps.interface import Gaps
from headwise.tasks.interface import Evaluated, OnProgress
from headwise.text.tokenizer import Tokenizer
from headwise.text.vocabulary import MASK, SPECIAL

if TYPE_CHECKING:
    from headwise.data.masked import MaskedBatches
    from headwise.data.masking import Masking
    from headwise.data.store import Store
    from headwise.look.capture import Look
    from headwise.tasks.filler import Filler


class MaskedGaps(Gaps):
    """Single tokens."""

    def special_tokens(self, recipe: Recipe) -> tuple[str, ...]:
        return (MASK,)

    def batches(
        self, store: Store, recipe: Recipe, tokenizer: Tokenizer, max_length: int | None, *,
        rank: int = 0, world: int = 1, shuffle: bool = True,
    ) -> MaskedBatches:  # fmt: skip
        from headwise.data.masked import MaskedBatches

        rule = masking(tokenizer, recipe.gaps.share, recipe.training.seed, whole_words=recipe.gaps.whole_words)
        return MaskedBatches(
            store, recipe.training.batch_tokens, rule, longest=max_length, shuffle=shuffle, rank=rank, world=world
        )

    def open(self, bundle: Bundle, tokenizer: Tokenizer, engine: str, precision: str, device: str) -> Filler:
        from headwise.tasks.filler import Filler
        from headwise.tasks.inputs.text import INPUTS

        if engine != "torch":
            try:
                return Filler(bundle, tokenizer, token_encoder(bundle, Assets.load(bundle.path).tokenizers, precision))
            except (WorkFailed, UsageError):
                if engine == "ctranslate2":
                    raise
        from headwise.bundle.weights import load_model
        from headwise.decoding.encoder_engine import TorchEncoder

        return Filler(bundle, tokenizer, TorchEncoder(load_model(bundle, device), INPUTS.tensors))

    def evaluate(
        self, bundle: Bundle, tokenizer: Tokenizer, lines: list[str], stride: int, on_progress: OnProgress | None
    ) -> Evaluated:
        from dataclasses import replace

        from headwise.bundle.weights import load_model
        from headwise.evaluation.masked_tokens import masked_scores

        network, rule = load_model(bundle), masking(tokenizer)
        found = masked_scores(network, tokenizer, lines, rule, stride=stride, on_progress=on_progress)
        return replace(found, overlap=seen_in_training(bundle.card, "text", lines))

    def look(self, opened: Any, text: str) -> Look:
        from headwise.bundle.weights import load_model
        from headwise.look.encoder import look_at_input

        network = opened.network or load_model(opened.bundle)
        return look_at_input(network, opened.tokenizer, opened.encode(text))


GAPS = MaskedGaps()


def masking(tokenizer: Tokenizer, share: float = 0.15, seed: int = 0, *, whole_words: bool = False) -> Masking:
    """The rule by which tokens are hidden."""
    from headwise.data.masked import candidates
    from headwise.data.masking import Masking
    from headwise.text.word_starts import word_starts

    mask = mask_of(tokenizer)
    others = candidates(tokenizer.size, (*range(len(SPECIAL)), mask))
    return Masking(mask, others, seed, share, word_starts(tokenizer) if whole_words else None)


def mask_of(tokenizer: Tokenizer) -> int:
    mask = tokenizer.find(MASK)
    if mask is None:
        raise UsageError(f"the model's tokenizer has no token '{MASK}': it was not trained to fill gaps")
    return mask
