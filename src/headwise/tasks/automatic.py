"""Settings that a recipe leaves out: chosen from the data and the speed of the machine, each with its reason.

The choices are written into the run's resolved recipe, so that a resumed or repeated run has the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from headwise.config.recipe import left_out, with_values
from headwise.config.schema import Recipe, require_family

DEFAULT_MINUTES = 30.0
DEFAULT_PATIENCE = 5  # validations without improvement
HELD_OUT_LINES, HELD_OUT_SHARE = 1000, 0.1  # split off for validation: at most so many lines, and this share
WARMUP_SHARE, LONGEST_WARMUP = 10, 1000
PAIRS = "pairs"  # the unit of parallel text
VALIDATIONS, RECORDS = 12, 60  # during a run
FEW_EPOCHS, CHARACTERS_PER_MINUTE = 10, 600_000  # a small model on two cores
FEWEST_TO_SPLIT = 200  # lines
FINE_TUNING_SHARE = 0.2  # of the rate that a model of that width is trained with from scratch
FACTOR = 0.1  # a learning rate from here on is meant as the factor of the paper's schedule


@dataclass(frozen=True)
class DataFacts:
    """What is known of the training data before it is prepared."""

    lines: int  # or pictures, or recordings
    characters: int
    unit: str = "lines"  # what `lines` counts, in words


@dataclass(frozen=True)
class Choice:
    """A setting, the value chosen for it, and why."""

    key: str
    value: Any
    reason: str


def choose(recipe: Recipe, choices: Iterable[Choice]) -> tuple[Recipe, list[Choice]]:
    """Puts choices where the recipe leaves a setting out; returns those that were taken."""
    taken = [choice for choice in choices if left_out(recipe, choice.key)]
    return with_values(recipe, {choice.key: choice.value for choice in taken}), taken


def optimises_itself(recipe: Recipe) -> bool:
    """Whether the recipe names a schedule, or a factor of the paper's: then no other is chosen."""
    factor = recipe.training.learning_rate >= FACTOR and not left_out(recipe, "training.learning_rate")
    return factor or not left_out(recipe, "training.schedule")


def before_tokenizing(recipe: Recipe, facts: DataFacts) -> list[Choice]:
    """What every task chooses by the size of its data: an end, a validation part, a preset, a vocabulary."""
    choices = []
    training = recipe.training
    if training.steps is None and training.epochs is None and training.minutes is None:
        reason = "no end is given"
        choices.append(Choice("training.minutes", DEFAULT_MINUTES, reason))
        choices.append(Choice("training.patience", DEFAULT_PATIENCE, reason))
    if not recipe.data.validated and facts.lines >= FEWEST_TO_SPLIT:
        share = round(min(HELD_OUT_SHARE, HELD_OUT_LINES / facts.lines), 4)
        choices.append(Choice("data.split", share, "no validation data is given"))
    if recipe.model.from_ is None:
        choices += _model(recipe, facts)
        if recipe.tokenizer.kind in ("bpe", "unigram") and not recipe.tokenizer.files:
            counted = f"{facts.lines:,} {facts.unit}" if facts.unit == PAIRS else f"{facts.characters:,} characters"
            choices.append(Choice("tokenizer.size", vocabulary_size(facts), counted))
    return choices


def _model(recipe: Recipe, facts: DataFacts) -> list[Choice]:
    """A preset by the size of the data, where the recipe says nothing of the architecture."""
    family = require_family(recipe.model.family)
    preset = next((name for bound, name in family.by_size if facts.lines <= bound), "")
    if not preset or recipe.model.preset is not None or recipe.model.own:
        return []
    names, size = family.settings.model_fields, f"{facts.lines:,} {facts.unit}"
    choices = [Choice("model.preset", preset, size)]
    if "norm" in names:
        choices.append(Choice("model.norm", "pre", "needs no long warm-up"))
    if "dropout" in names:
        choices.append(_dropout(recipe, facts, size))
    return choices


def _dropout(recipe: Recipe, facts: DataFacts, size: str) -> Choice:
    """By the size of the data, and little where the run is too short to overfit it."""
    minutes = recipe.training.minutes
    if minutes is not None and minutes * CHARACTERS_PER_MINUTE < FEW_EPOCHS * facts.characters:
        return Choice("model.dropout", 0.1, f"few epochs in {minutes:g} minutes")
    return Choice("model.dropout", dropout(facts.lines), size)


def only_on_outputs(recipe: Recipe) -> list[Choice]:
    """Dropout on the outputs of sub-layers only, which takes less time and scores as well."""
    names = require_family(recipe.model.family).settings.model_fields
    inner = (name for name in ("attention_dropout", "activation_dropout") if name in names)
    return [Choice(f"model.{name}", 0.0, "saves time") for name in inner]


def vocabulary_size(facts: DataFacts) -> int:
    """A piece should occur often enough to be learned: about one per 7 pairs or per 500 characters, in round numbers.

    Pairs are counted as such because a Chinese sentence has few characters, but many different ones.
    """
    pieces = facts.lines // 7 if facts.unit == PAIRS else facts.characters // 500
    return min(8000, max(500, pieces // 500 * 500))


def dropout(lines: int) -> float:
    """The less text, the more regularisation."""
    return 0.3 if lines < 10_000 else 0.2 if lines < 100_000 else 0.1


def optimisation(recipe: Recipe, width: int, batch_tokens: int, size: str) -> list[Choice]:
    """A schedule that works for short and long runs alike, for a model of this width."""
    fine_tuned, model = recipe.model.from_ is not None, recipe.model
    # Norms after the residual sum make a short warm-up to a high rate unstable (Xiong et al. 2020).
    post = (model.preset is not None or bool(model.own)) and getattr(model.settings, "norm", "") == "post"
    width = (start_width(recipe.model.from_) if recipe.model.from_ is not None else None) or width
    named, peak, reason = optimizer_of(recipe, width)
    if optimises_itself(recipe):
        peak = round((FINE_TUNING_SHARE if fine_tuned else 1.0) * peak, 6)
        wanted = recipe.training.schedule != "noam"
        return [*named, Choice("training.learning_rate", peak, reason)] if wanted else []
    if fine_tuned:
        return [*named, *fine_tuning(peak, batch_tokens, size)]
    peak = peak / (2 if post else 1)
    return [
        *named,
        Choice("training.batch_tokens", batch_tokens, size),
        Choice("training.schedule", "cosine", "ends at 0 in any time"),
        Choice("training.learning_rate", round(peak, 5), reason + (", post-norm" if post else "")),
        Choice("training.clip_norm", 1.0, "a bad batch does no harm"),
        Choice("training.ema", 0.999, "averaged weights score better"),
    ]


def optimizer_of(recipe: Recipe, width: int) -> tuple[list[Choice], float, str]:
    """The family's own optimizer, if it has one and the recipe names none; the peak of the rate, and its reason."""
    family = require_family(recipe.model.family)
    free = left_out(recipe, "training.optimizer") and left_out(recipe, "training.learning_rate")
    if family.optimizer is None or not free:
        return [], peak_rate(width), f"width {width}"
    name, peak = family.optimizer
    return [Choice("training.optimizer", name, f"family {family.name}")], peak, name


def fine_tuning(peak: float, batch_tokens: int, size: str) -> list[Choice]:
    """A model that has learned already: a low rate that only falls, and hardly any warm-up."""
    return [
        Choice("training.batch_tokens", batch_tokens, size),
        Choice("training.schedule", "linear", "fine-tuning"),
        Choice("training.learning_rate", round(FINE_TUNING_SHARE * peak, 6), "fine-tuning"),
        Choice("training.warmup", 0.03, "fine-tuning"),
        Choice("training.clip_norm", 1.0, "a bad batch does no harm"),
    ]


def gentler(choices: Sequence[Choice], times: float) -> list[Choice]:
    """The same choices with a learning rate so many times lower."""
    key = "training.learning_rate"
    return [Choice(key, round(c.value / times, 6), c.reason) if c.key == key else c for c in choices]


def peak_rate(width: int) -> float:
    """The learning rate of a model from scratch: the wider, the lower, but not as low as rounding to 0."""
    return max(1e-4, float(2.5e-3 * (128 / width) ** 0.5))


def start_width(model: str) -> int | None:
    """The width of a model that is fine-tuned."""
    from headwise.bundle.directory import open_bundle

    width = open_bundle(model, verify=False).architecture.get("model_dim")
    return width if isinstance(width, int) else None


def after_timing(recipe: Recipe, steps: int, seconds: float | None) -> list[Choice]:
    """What follows from the number of updates and the seconds that one takes, if these were measured."""
    often = min(1000, max(10, steps // VALIDATIONS))
    reason = f"{steps:,} updates"
    return [
        Choice("training.warmup", min(LONGEST_WARMUP, max(1, steps // WARMUP_SHARE)), reason),
        Choice("training.validate_every", often, reason),
        Choice("training.save_every", often, reason),
        _records(steps, seconds),
    ]


def _records(steps: int, seconds: float | None) -> Choice:
    """Records at least every ten seconds, with room for a machine that slows down."""
    if seconds is None:
        return Choice("training.log_every", min(50, max(1, steps // RECORDS)), f"{steps:,} updates")
    return Choice("training.log_every", min(50, max(1, round(5 / max(seconds, 1e-3)))), "a record every few seconds")


def paced(recipe: Recipe, steps: int, seconds: float | None) -> tuple[Recipe, list[Choice]]:
    """The recipe of a known number of updates, and what was chosen because of it. The paper's schedule stays as is."""
    choices = after_timing(recipe, steps, seconds)
    papers = recipe.training.schedule == "noam"
    return choose(recipe, [choice for choice in choices if not (papers and choice.key == "training.warmup")])
