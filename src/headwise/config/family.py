"""What a family of models declares: hyperparameters with their help and defaults, presets, tasks. Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from headwise.errors import RecipeError, ShapeError

Fraction = Annotated[float, Field(ge=0.0, lt=1.0)]
LARGEST = 10**12  # whole number: beyond this a library aborts or overflows instead of saying what is wrong
Positive = Annotated[int, Field(ge=1, le=LARGEST)]
Natural = Annotated[int, Field(ge=0, le=LARGEST)]
Activation = Literal["relu", "gelu", "gelu-tanh", "silu"]


def _as_tuple(value: object) -> object:
    return tuple(value) if isinstance(value, list) else (value,) if isinstance(value, int) else value


# Ranks of words from each of which on vectors are narrower: adaptive input and softmax.
Cutoffs = Annotated[tuple[Positive, ...], BeforeValidator(_as_tuple)]


class Section(BaseModel):
    """A table of a recipe. Frozen: a resolved recipe is a value that can be stored, compared and printed."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True, allow_inf_nan=False)


class Settings(Section):
    """The hyperparameters of a family. A subclass is the only home of their names, help and defaults."""

    streams: ClassVar[bool] = False  # it remembers earlier segments of a text: batches must go on where the last ended

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Checks values that come from code or from a model directory; the first mistake is one line."""
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            name = ".".join(str(part) for part in first["loc"])
            if first["type"] == "extra_forbidden":
                raise ShapeError(f"unknown setting '{name}'; there are {', '.join(cls.model_fields)}") from None
            problem = first["msg"].removeprefix("Input should be ")
            raise ShapeError(f"{name} must be {problem}, not {first['input']!r}") from None

    @property
    def longest(self) -> int | None:
        """The longest sequence that a model with these settings takes, in tokens; None: no limit."""
        return None

    @property
    def fills(self) -> str:
        """How it fills gaps, a name in `tasks/gaps`: masked tokens in their place, or spans that a decoder writes."""
        return "masked"

    @property
    def no_label_smoothing(self) -> str | None:
        """Which setting rules label smoothing out; None: none does."""
        return None


@dataclass(frozen=True)
class Family:
    """An architecture. To add one is to add a file to `config/families/` and a file to `models/`."""

    name: str
    about: str  # one line for people
    tasks: tuple[str, ...]  # what it can be trained for; the first is the default
    network: str  # where its class is: "headwise.models.transformer:Transformer"
    settings: type[Settings]
    sizes: tuple[str, ...]  # arguments of the network that come from the data: vocabulary sizes, number of labels
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # what each changes of the defaults
    default_preset: str = ""
    # Where only files are given: by the field of [data] that names them, the task that it is then trained for.
    default_for: Mapping[str, str] = field(default_factory=dict)
    # What it learns best with where the recipe leaves that open: an optimizer and the peak of its learning rate.
    optimizer: tuple[str, float] | None = None
    # Presets by the number of training lines, smallest first: (most lines, preset).
    by_size: tuple[tuple[float, str], ...] = ()

    def resolve(self, preset: str | None, own: Mapping[str, Any]) -> Settings:
        """The preset's values with a recipe's own over them. Mistakes are pydantic's ValidationError."""
        name = preset or self.default_preset
        if name and name not in self.presets:
            raise RecipeError(
                f"unknown model.preset '{name}' for family '{self.name}'; there are {', '.join(self.presets)}"
            )
        return self.settings.model_validate({**self.presets.get(name, {}), **own})
