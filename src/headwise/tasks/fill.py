"""The task `fill`: learns from running text to fill its gaps, and fills the gaps, written [MASK], of a user's text.

How gaps are made, and who fills them, is the matter of `tasks/gaps/`: an encoder in their place, a decoder in turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwise.bundle.assets import Assets
from headwise.bundle.directory import Bundle
from headwise.config.schema import Recipe, require_family
from headwise.errors import DataError, RecipeError, UsageError
from headwise.tasks.answer_scores import AnswerScorer
from headwise.tasks.automatic import Choice, DataFacts, before_tokenizing, choose, optimisation, optimises_itself
from headwise.tasks.gaps import gaps_of
from headwise.tasks.interface import Evaluated, OnProgress
from headwise.tasks.served_encoders import ServedFiller
from headwise.tasks.text_data import TextTask

if TYPE_CHECKING:
    from headwise.data.batch import Batch
    from headwise.data.cursor import Batches
    from headwise.data.store import Store
    from headwise.look.capture import Look
    from headwise.losses import BatchLoss, Loss
    from headwise.models.interface import Network
    from headwise.tasks.gaps.interface import FillsGaps
    from headwise.tasks.interface import Prepared

ENGINES = ("auto", "torch", "ctranslate2")


class Fill(TextTask):
    """Filling gaps: what BERT and T5 are pretrained with, and useful by itself."""

    name = "fill"
    reads = (("text",),)
    scores = ("accuracy",)

    # ---- training

    def special_tokens(self, recipe: Recipe) -> tuple[str, ...]:
        return gaps_of(recipe.model.settings).special_tokens(recipe)

    def check(self, recipe: Recipe) -> None:
        if recipe.tokenizer.dropout or recipe.tokenizer.target_dropout:
            raise RecipeError("filling gaps does not support tokenizer.dropout, which is for translation: set it to 0")
        gaps_of(recipe.model.settings).check(recipe)

    def automatic(self, recipe: Recipe, facts: DataFacts) -> list[Choice]:
        choices = [*before_tokenizing(recipe, facts), *gaps_of(recipe.model.settings).automatic(recipe)]
        bounded = "max_length" in type(recipe.model.settings).model_fields
        if bounded and any(choice.key == "model.preset" for choice in choices):
            choices.append(Choice("model.max_length", 128, "a small model"))
        if not optimises_itself(recipe):
            choices.append(Choice("training.optimizer", "adamw", "does not memorise"))
            choices.append(Choice("training.weight_decay", 0.01, "does not memorise"))
        choices.append(Choice("training.label_smoothing", 0.0, "true probabilities are wanted"))
        chosen, _ = choose(recipe, choices)
        width = getattr(chosen.model.settings, "model_dim", 256)
        return [*choices, *optimisation(recipe, width, 4096, f"{facts.characters:,} characters")]

    def sizes(self, assets: Assets, recipe: Recipe) -> dict[str, Any]:
        known = require_family(recipe.model.family).sizes
        sizes = {"vocab": assets.tokenizers.target.size, "classes": None}
        return {name: value for name, value in sizes.items() if name in known}

    def batches(
        self,
        store: Store,
        recipe: Recipe,
        assets: Assets,
        max_length: int | None,
        *,
        rank: int = 0,
        world: int = 1,
        shuffle: bool = True,
    ) -> Batches:
        tokenizer = assets.tokenizers.target
        for name in self.special_tokens(recipe):
            if tokenizer.find(name) is None:
                raise RecipeError(
                    f"the tokenizer has no token '{name}' for gaps; start from a model that was trained to fill them, "
                    "or let a tokenizer be trained (without tokenizer.files)"
                )
        gaps = gaps_of(recipe.model.settings)
        return gaps.batches(store, recipe, tokenizer, max_length, rank=rank, world=world, shuffle=shuffle)

    def loss(self, network: Network, batch: Batch, smoothing: float) -> BatchLoss:
        from headwise.losses import token_loss

        return token_loss(network, batch, smoothing)

    def objective(self, recipe: Recipe, prepared: Prepared) -> Loss:
        return gaps_of(recipe.model.settings).loss

    def scorer(self, network: Network, assets: Assets, recipe: Recipe) -> AnswerScorer:
        return AnswerScorer()

    # ---- using a model

    def open(
        self, bundle: Bundle, engine: str = "auto", *, precision: str = "int8", device: str = "cpu", **options: Any
    ) -> FillsGaps:
        if engine not in ENGINES:
            raise UsageError(f"unknown engine '{engine}'; choose one of {', '.join(ENGINES)}")
        tokenizer = Assets.load(bundle.path).tokenizers.target
        return gaps_of(bundle.settings).open(bundle, tokenizer, engine, precision, device)

    def decodes(self, bundle: Bundle) -> bool:
        return gaps_of(bundle.settings).decodes

    def unit(self, assets: Assets) -> str:
        return "lines"

    def evaluate(self, bundle: Bundle, on_progress: OnProgress | None = None, **asked: Any) -> Evaluated:
        from headwise.text.lines import read_lines

        file, stride = asked.pop("text", ""), int(asked.pop("stride", 0) or 0)
        if not file or asked:
            raise UsageError(f"{bundle.path} fills gaps: evaluate it with --text FILE only")
        lines, tokenizer = read_lines(file), Assets.load(bundle.path).tokenizers.target
        if not any(map(str.strip, lines)):
            raise DataError("there is no text to evaluate: all lines are empty", file=file)
        return gaps_of(bundle.settings).evaluate(bundle, tokenizer, lines, stride, on_progress)

    def look(self, opened: FillsGaps, item: str, target: str | None = None, **options: Any) -> Look:
        if target is not None:
            raise UsageError("a model that fills gaps has no target; leave --target out")
        return gaps_of(opened.bundle.settings).look(opened, item)

    def serve(self, name: str, bundle: Bundle, engine: str, precision: str) -> ServedFiller:
        return ServedFiller(name, self.open(bundle, engine, precision=precision), lambda: self.open(bundle, "torch"))


TASK = Fill()
