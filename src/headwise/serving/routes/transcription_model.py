"""Speech models of a server: their queues, the work, and the forms in which a transcript is sent."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from fastapi.responses import JSONResponse, Response

from headwise.decoding.transcript import Segment, Transcript, subtitles
from headwise.errors import DataError
from headwise.serving.served_models import ServedModel
from headwise.serving.streams import passed_on
from headwise.serving.uploads import refused_file
from headwise.tasks.served_transcriber import CheckedSound, ServedTranscriber

MAX_SECONDS = 600.0  # of a sound

Form = Literal["json", "text", "srt", "vtt"]
MEDIA = {"text": "text/plain", "srt": "application/x-subrip", "vtt": "text/vtt"}


@dataclass(frozen=True)
class SpeechSettings:
    """How sounds are to be transcribed; sounds with equal settings may share a batch."""

    language: str | None = None
    task: Literal["transcribe", "translate"] = "transcribe"
    beam: int | None = None
    timestamps: bool | None = None
    temperatures: tuple[float, ...] | None = None


@dataclass(frozen=True)
class TranscribeWork:
    """Transcribes sounds, of any number of requests together."""

    model: TranscriptionModel
    settings: SpeechSettings

    def run(self, items: Sequence[CheckedSound]) -> Sequence[Transcript]:
        return self.model.served.transcribe(items, **asdict(self.settings))


@dataclass(frozen=True, eq=False)
class TellingWork:
    """Transcribes one sound and tells of each segment as it is found. Never equal to another: no two share a batch."""

    model: TranscriptionModel
    settings: SpeechSettings
    on_segment: Callable[[Segment], None]  # called in the engine's thread

    def run(self, items: Sequence[CheckedSound]) -> Sequence[Transcript]:
        def tell(number: int, segment: Segment) -> None:
            self.on_segment(segment)

        return self.model.served.transcribe(items, on_segment=tell, **asdict(self.settings))


@dataclass(frozen=True, eq=False)
class ReadWork:
    """Reads a file to its end. Never equal to another: one that is damaged must not stop those of others."""

    model: TranscriptionModel

    def run(self, items: Sequence[bytes]) -> Sequence[CheckedSound]:
        return [self._read(content) for content in items]

    def _read(self, content: bytes) -> CheckedSound:
        try:
            return self.model.served.read(content, MAX_SECONDS)
        except DataError as error:
            refusal = refused_file(error, "the sound")
        raise refusal  # out here, so that it does not keep the other error in memory


class TranscriptionModel(ServedModel):
    """Transcribes sounds; files are read in the side queue."""

    served: ServedTranscriber

    async def transcribe(
        self, content: bytes, settings: SpeechSettings, on_segment: Callable[[Segment], None] | None = None
    ) -> Transcript:
        """Refuses a file that cannot be read before it waits for its turn."""
        self.queue.check_room()
        (sound,) = await self.side_queue.submit(ReadWork(self), [content], [1 + len(content) // 10_000])
        work = TranscribeWork(self, settings) if on_segment is None else TellingWork(self, settings, on_segment)
        size = math.ceil(sound.seconds)
        (transcript,) = await self.queue.submit(work, [sound], [max(1, size)])
        found: Transcript = transcript
        return found


async def stream_transcript(
    model: TranscriptionModel, content: bytes, settings: SpeechSettings
) -> AsyncIterator[Segment | Transcript]:
    """Yields segments while they are found, and the whole transcript last. Closing the iterator stops the work."""

    async def transcribe(hand_over: Callable[[Segment | Transcript], None]) -> None:
        hand_over(await model.transcribe(content, settings, hand_over))

    parts = passed_on(transcribe)
    try:
        async for part in parts:
            yield part
    finally:
        await parts.aclose()  # type: ignore[attr-defined]


def transcript_response(transcript: Transcript, form: Form, content: dict[str, Any]) -> Response:
    """Makes the answer: plain text, subtitles, or `content` as JSON."""
    if form == "json":
        return JSONResponse(content)
    text = transcript.text + "\n" if form == "text" else subtitles(transcript, form)
    return Response(text, media_type=MEDIA[form])
