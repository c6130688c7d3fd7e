"""What a transcriber returns: text with times. Does not import torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Segment:
    """A stretch of sound and what is said in it."""

    start: float  # seconds from the beginning of the sound
    end: float
    text: str
    confidence: float  # in [0, 1]: the geometric mean of the probabilities of the window's tokens
    no_speech: float | None = None  # the probability that nothing is said; None: the model does not tell
    temperature: float = 0.0  # above 0: the search failed, and this was sampled

    def as_dict(self) -> dict[str, Any]:
        """For JSON; times have milliseconds."""
        return {
            **asdict(self), "start": round(self.start, 3), "end": round(self.end, 3), "text": self.text.strip(),
            "confidence": round(self.confidence, 4),
        }  # fmt: skip


@dataclass(frozen=True)
class Transcript:
    """The text of a sound. Silence has no segments."""

    text: str
    segments: tuple[Segment, ...]
    language: str | None  # of what is said; None: the model knows of one language only, and does not say which
    seconds: float  # of sound
    silence: float = 0.0  # seconds that were skipped, because they are silent
    file: str = ""

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Transcript({self.text!r}, {len(self.segments)} segments, {self.seconds:.1f} seconds)"

    def as_dict(self) -> dict[str, Any]:
        """For JSON; times have milliseconds."""
        return {
            "file": self.file, "seconds": round(self.seconds, 3), "silence": round(self.silence, 3),
            "language": self.language, "text": self.text, "segments": [one.as_dict() for one in self.segments],
        }  # fmt: skip


def subtitles(transcript: Transcript, kind: str) -> str:
    """SubRip (`srt`) or WebVTT (`vtt`): one cue per segment."""
    mark = "," if kind == "srt" else "."
    cues = []
    for number, one in enumerate(transcript.segments, start=1):
        # A line that looks like the arrow of a cue, or an empty one, would end it.
        text = " ".join(one.text.split()).replace("-->", "->")
        times = f"{clock(one.start, mark)} --> {clock(one.end, mark)}"
        cues.append(f"{number}\n{times}\n{text}\n" if kind == "srt" else f"{times}\n{text}\n")
    return "\n".join(cues if kind == "srt" else ["WEBVTT\n", *cues])


def clock(seconds: float, mark: str = ".") -> str:
    """01:02:03.456."""
    milliseconds = round(1000 * seconds)
    hours, rest = divmod(milliseconds, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    return f"{hours:02}:{minutes:02}:{rest // 1000:02}{mark}{rest % 1000:03}"
