"""Limits of the server and of every request. Those of one task stand in its file in routes/."""

from __future__ import annotations

from dataclasses import dataclass

MAX_BODY = 256 * 1024  # bytes of a request, unless its route takes files
MAX_HEADERS = 32 * 1024  # bytes before the body
MAX_TEXT = 10_000  # characters of all texts of a request together


@dataclass(frozen=True)
class Limits:
    """What the operator of the server decides."""

    queue: int = 128  # requests per model that are accepted and not yet answered
    slots: int = 4  # texts that a language model writes at the same time
    timeout: float = 60.0  # seconds from a request's arrival to its answer
    grace: float = 20.0  # seconds that a shutdown waits for accepted requests
    connections: int = 1_000
    arrival: float = 15.0  # seconds in which the headers must arrive, and again the body
    delay: float = 0.004  # seconds that a sentence waits for others to share a batch with, while the model is at work
    batch: int = 64  # most sentences decoded together
    uploads: int = 128 * 2**20  # bytes of files in memory that are not yet answered, of all requests together
