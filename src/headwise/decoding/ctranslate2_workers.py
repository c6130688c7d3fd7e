"""Opens CTranslate2 on an exported model: one single-threaded worker per core."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from headwise.config.cores import decoding_cores
from headwise.errors import ModelError


class Workers:
    """Spreads the texts of a call over the workers; a single text uses one of them.

    A worker with several threads waits at every step for the slowest, and is slower than one with a single thread: with
    int8 translation several times, with Whisper up to a width of 512 by a fifth or more (docs/log/speech.md).
    """

    def __init__(self, kind: Callable[..., Any], directory: Path, cores: int = 0) -> None:
        """`kind` is a class of CTranslate2: Translator, Generator, …"""
        self.cores = cores or decoding_cores()
        try:
            # The queue is unbounded: otherwise the caller would block on it and could not collect finished results.
            self.engine = kind(
                str(directory), device="cpu", inter_threads=self.cores, intra_threads=1, max_queued_batches=-1
            )
        except (RuntimeError, ValueError) as error:
            raise ModelError(f"ctranslate2 cannot read {directory}: {error}") from error

    def share(self, texts: int, most: int) -> int:
        """Returns the texts per batch, at most `most`, such that every worker gets equally many batches."""
        batches = -(-texts // most)
        batches += -batches % self.cores
        return -(-texts // max(1, batches)) or 1
