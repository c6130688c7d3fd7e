"""Opens CTranslate2 on an exported model: as a rule one single-threaded worker per core."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from headwise.config.cores import decoding_cores
from headwise.errors import ModelError


class Workers:
    """Spreads the texts of a call over the workers; a single text uses one of them.

    With int8, a worker with several threads is several times slower than one with a single thread, except where a
    single input is large (`threads`).
    """

    def __init__(self, kind: Callable[..., Any], directory: Path, cores: int = 0, threads: int = 1) -> None:
        """`kind` is ctranslate2.Translator or Generator; each worker has `threads`, and together they use all cores."""
        self.cores = max(1, (cores or decoding_cores()) // threads)  # workers, each on its own
        try:
            # The queue is unbounded: otherwise the caller would block on it and could not collect finished results.
            self.engine = kind(
                str(directory), device="cpu", inter_threads=self.cores, intra_threads=threads, max_queued_batches=-1
            )
        except (RuntimeError, ValueError) as error:
            raise ModelError(f"ctranslate2 cannot read {directory}: {error}") from error

    def share(self, texts: int, most: int) -> int:
        """Returns the texts per batch, at most `most`, such that every worker gets equally many batches."""
        batches = -(-texts // most)
        batches += -batches % self.cores
        return -(-texts // max(1, batches)) or 1
