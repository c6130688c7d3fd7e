"""Options of a transcription."""

from __future__ import annotations

import pytest

from headwise.decoding.speech_options import SpeechOptions
from headwise.errors import UsageError


def test_a_models_defaults_give_way_to_a_call() -> None:
    assert SpeechOptions.of_model({"beam": 3, "length_penalty": 1.0}).beam == 3
    assert SpeechOptions.of_model({"beam": 3}, beam=1, language=None).beam == 1


@pytest.mark.parametrize(
    "wrong",
    [{"beam": 0}, {"task": "sing"}, {"temperatures": ()}, {"temperatures": (-1.0,)}, {"batch": 0}, {"voice": 1}],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        SpeechOptions.of_model({}, **wrong)
