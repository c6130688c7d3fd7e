"""CTranslate2 on an exported model: one worker with one thread for each core."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from headwise.config.cores import decoding_cores
from headwise.errors import ModelError


class Workers:
    """Texts of one call are spread over the workers; a single text uses one of them.

    With int8, several threads inside of one worker are several times slower than one.
    """

    def __init__(self, kind: Callable[..., Any], directory: Path, cores: int = 0) -> None:
        """`kind` is ctranslate2.Translator or Generator."""
        self.cores = cores or decoding_cores()
        try:
            # No bound on queued batches: whoever asks would wait for the queue and could not read what is done.
            self.engine = kind(
                str(directory), device="cpu", inter_threads=self.cores, intra_threads=1, max_queued_batches=-1
            )
        except (RuntimeError, ValueError) as error:
            raise ModelError(f"{directory} is not a model that ctranslate2 can read: {error}") from error

    def share(self, texts: int, most: int) -> int:
        """Texts per batch, at most `most`: every worker has equally many batches, so that none waits for another."""
        batches = -(-texts // most)
        batches += -batches % self.cores
        return -(-texts // max(1, batches)) or 1
