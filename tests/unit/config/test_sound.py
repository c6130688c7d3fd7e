"""The settings of [data.sound]."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from headwise.config.sound import Sound


def test_every_setting_has_help_and_bounds() -> None:
    assert all(field.description for field in Sound.model_fields.values())
    for wrong in ({"speed": 0.9}, {"noise": -1.0}, {"time_masks": -1}, {"frequency_width": 1.0}, {"tempo": 1}):
        with pytest.raises(ValidationError):
            Sound.model_validate(wrong)
