"""The settings of `[data.sound]`: how recordings are varied while a model learns from them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from headwise.config.family import Fraction, Section

_Count = Annotated[int, Field(ge=0, le=100)]


class Sound(Section):
    """Variations of recordings; each epoch draws others. All are off where they are 0."""

    speed: Annotated[float, Field(ge=0, le=0.5)] = Field(
        0.1, description="largest change of speed, with the pitch: 0.1 draws 90 to 110 %"
    )
    noise: Annotated[float, Field(ge=0, le=100)] = Field(
        10.0, description="added noise: the lowest ratio of signal to noise, in decibels; draws up to 40 more"
    )
    time_masks: _Count = Field(2, description="stretches of time that are hidden (SpecAugment)")
    time_width: Fraction = Field(0.1, description="longest hidden stretch, as a share of the recording")
    frequency_masks: _Count = Field(2, description="bands of frequencies that are hidden (SpecAugment)")
    short_first: _Count = Field(
        0,
        description="epochs until all recordings are heard: the first has the shortest third only, each more than the "
        "last; where what is said is easier to find in short ones",
    )
    frequency_width: Fraction = Field(0.2, description="widest hidden band, as a share of all mel bins")
