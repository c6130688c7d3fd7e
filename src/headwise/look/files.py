"""Writing a file whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from headwise.errors import WorkFailed


def write_whole(path: Path, content: bytes) -> None:
    """A reader sees the old file or the new one, never a part; what could not be finished is removed."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise WorkFailed(f"{path}: cannot write the picture ({error.strerror or error})") from None
