"""Options of a transcription, and what an engine answers. Does not import torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from headwise.config.schema import WIDEST_BEAM, Decoding
from headwise.decoding.hypothesis import Stopped
from headwise.errors import UsageError
from headwise.sound.activity import SILENCE
from headwise.sound.features import Features
from headwise.text.speech_tokens import SpeechTask

TEMPERATURES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_DEFAULTS = Decoding.model_validate({})


@dataclass(frozen=True)
class SpeechOptions:
    """How sound is transcribed; thresholds are Whisper's (Radford et al. 2022, section 4.5)."""

    language: str | None = None  # of what is said; None: it is detected in the first window
    task: SpeechTask = "transcribe"
    timestamps: bool | None = None  # None: if the model has them
    beam: int = _DEFAULTS.beam
    temperatures: tuple[float, ...] | None = (
        None  # tried one after another; None: TEMPERATURES if the model is Whisper's
    )
    best_of: int = 5  # samples at a temperature above 0
    most_compression: float = 2.4  # of the text by zlib: above, it repeats itself
    least_log_prob: float = -1.0  # mean over tokens: below, the model does not know
    most_no_speech: float = 0.6  # above, with a mean below `least_log_prob`: nothing is said
    silence: float = SILENCE  # decibels below full scale: windows that stay below are not read; -inf: all are
    batch: int = 8  # windows that are decoded together
    seed: int = 0

    def __post_init__(self) -> None:
        _check(1 <= self.beam <= WIDEST_BEAM, f"beam must be between 1 and {WIDEST_BEAM}, not {self.beam}")
        _check(1 <= self.best_of <= WIDEST_BEAM, f"best_of must be between 1 and {WIDEST_BEAM}, not {self.best_of}")
        _check(1 <= self.batch <= 1024, f"batch must be between 1 and 1024, not {self.batch}")
        _check(self.task in ("transcribe", "translate"), f"task must be transcribe or translate, not '{self.task}'")
        _check(self.temperatures is None or bool(self.temperatures), "give at least one temperature")
        for temperature in self.temperatures or ():
            _check(0 <= temperature <= 10, f"temperature must be between 0 and 10, not {temperature}")

    @classmethod
    def of_model(cls, decoding: Mapping[str, Any], **changes: Any) -> SpeechOptions:
        """Combines a model's own defaults with the changes of a call; None means no change."""
        wanted = {key: value for key, value in changes.items() if value is not None}
        known = {"beam": decoding["beam"]} if "beam" in decoding else {}
        try:
            return cls(**{**known, **wanted})
        except TypeError as error:
            raise UsageError(f"unknown option: {error}") from error


@dataclass(frozen=True)
class SpeechSearch:
    """One attempt at some windows."""

    beam: int = 5
    temperature: float = 0.0  # above 0: samples instead of a search
    best_of: int = 5
    timestamps: bool = False
    seed: int = 0


class Spoken(NamedTuple):
    """What a model hears in a window: tokens without prompt and end, timestamps among them."""

    tokens: tuple[int, ...]
    mean_log_prob: float  # over the tokens and the end, of what was allowed at each step
    no_speech: float | None = None
    stopped: Stopped = "eos"


class SpeechEngine(Protocol):
    """Decodes windows of sound, given as features (frames, mels)."""

    name: str

    def search(
        self, windows: Sequence[Features], prompts: Sequence[tuple[int, ...]], asked: SpeechSearch
    ) -> list[Spoken]:
        """Finds the best text of each window; windows of one call have the same number of frames."""
        ...

    def languages(self, windows: Sequence[Features]) -> list[dict[str, float]]:
        """The probability of each language that the model knows, for each window."""
        ...


def _check(fine: bool, problem: str) -> None:
    if not fine:
        raise UsageError(problem)
