from __future__ import annotations

from typing import Any

import pytest
from pydantic import Field

from headwise.config.families import family_names, find_family, register_family
from headwise.config.family import Family, Positive, Settings
from headwise.config.schema import Model, Recipe
from headwise.errors import RecipeError, ShapeError


class BoxSettings(Settings):
    width: Positive = Field(8, description="of the box")
    depth: Positive = Field(2, description="of the box")


BOX = Family(
    name="box",
    about="a family of this test",
    tasks=("generate", "translate"),
    network="headwise.models.lm:LanguageModel",
    settings=BoxSettings,
    sizes=("vocab",),
    presets={"flat": {"depth": 1}},
)


@pytest.fixture
def box(monkeypatch: pytest.MonkeyPatch) -> Family:
    monkeypatch.setattr("headwise.config.families._registered", {})
    register_family(BOX)
    return BOX


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"widht": 3}, "unknown setting 'widht'; there are width, depth"),
        ({"width": 0}, "width must be greater than or equal to 1, not 0"),
        ({"width": "8"}, "width must be a valid integer, not '8'"),
        ({"depth": 1.5, "width": 0}, "width must be greater than or equal to 1, not 0"),  # the first of several
    ],
)
def test_a_wrong_setting_is_one_line_that_names_it(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ShapeError) as caught:
        BoxSettings.of(values)
    assert str(caught.value) == message


def test_settings_have_their_defaults_and_cannot_be_changed() -> None:
    settings = BoxSettings.of({"width": 3})
    assert settings.model_dump() == {"width": 3, "depth": 2}
    assert (settings.longest, settings.no_label_smoothing) == (None, None)
    with pytest.raises(ValueError, match="frozen"):
        settings.width = 4  # type: ignore[misc]


def test_a_preset_goes_over_the_defaults_and_a_recipes_own_values_over_the_preset() -> None:
    assert BOX.resolve(None, {}) == BoxSettings()
    assert BOX.resolve("flat", {}) == BoxSettings(depth=1)
    assert BOX.resolve("flat", {"depth": 5, "width": 3}) == BoxSettings(width=3, depth=5)
    with pytest.raises(RecipeError, match=r"unknown model\.preset 'round' for family 'box'; there are flat"):
        BOX.resolve("round", {})


def test_a_registered_family_is_one_like_those_that_have_a_file(box: Family) -> None:
    assert {"box", "lm", "rnn", "transformer"} <= set(family_names())
    assert find_family("box") is box
    model = Model.model_validate({"family": "box", "preset": "flat", "width": 5})
    assert model.settings == BoxSettings(width=5, depth=1)
    assert model.own == {"width": 5}
    assert Recipe.model_validate({"model": {"family": "box"}}).task_name == "generate"
    assert Recipe.model_validate({"model": {"family": "box"}, "task": "translate"}).task_name == "translate"
    with pytest.raises(RecipeError, match="task 'fly' is not one of family 'box': generate, translate"):
        Recipe.model_validate({"model": {"family": "box"}, "task": "fly"})


def test_a_family_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    assert find_family("boxes") is None
    with pytest.raises(RecipeError, match=rf"model\.family must be one of {', '.join(family_names())}, not 'boxes'"):
        Model.model_validate({"family": "boxes"})


@pytest.mark.parametrize("name", family_names())
def test_every_setting_of_every_family_has_its_help(name: str) -> None:
    family = find_family(name)
    assert family is not None
    assert all(field.description for field in family.settings.model_fields.values())
    assert family.about
