"""What a request may ask for. Checked before anything is allocated for it; the numbers are in the API's schema too."""

from __future__ import annotations

from dataclasses import dataclass

MAX_BODY = 256 * 1024  # bytes of a request
MAX_HEADERS = 32 * 1024  # bytes before the body
MAX_TEXT = 10_000  # characters of all texts of a request together
MAX_TEXTS = 100  # texts in a request
MAX_BEAM = 10
MAX_ALTERNATIVES = 9
MAX_TERMS = 100  # of a glossary
MAX_TERM = 100  # characters
MAX_LOOK = 400  # characters: the picture grows with the square
MAX_TOKENS = 2_048  # that are generated, all samples of a request together at most four times as many
MAX_SAMPLES = 8
MAX_WRITTEN = 4 * MAX_TOKENS
MAX_PROMPTS = 8
MAX_STOPS = 4
MAX_STOP = 100  # characters of a stop string


@dataclass(frozen=True)
class Limits:
    """What the one who runs the server decides."""

    queue: int = 128  # requests a model has accepted and not yet answered
    slots: int = 4  # texts that a language model writes at the same time
    timeout: float = 60.0  # seconds from a request's arrival to its answer
    grace: float = 20.0  # seconds that a shutdown waits for what was accepted
    connections: int = 1_000
    arrival: float = 15.0  # seconds in which a request's headers, and then its body, must have come
    delay: float = 0.004  # seconds that a sentence waits for others while the model is at work
    batch: int = 64  # most sentences decoded together
