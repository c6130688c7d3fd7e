"""Writes model.safetensors tensor by tensor: it need not be in memory at once, nor be read to be hashed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from math import prod
from pathlib import Path

from torch import Tensor

_ALIGNMENT = 8  # bytes, of the data's beginning


def write_tensors(file: Path, weights: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]]) -> str:
    """Writes float32 tensors, as the safetensors library does: in the order of their names, after a header.

    Returns the file's SHA-256, which is computed while tensors are read and written.
    """
    header: dict[str, object] = {}
    place = 0
    for name in sorted(shapes):
        end = place + 4 * prod(shapes[name])
        header[name] = {"dtype": "F32", "shape": list(shapes[name]), "data_offsets": [place, end]}
        place = end
    written = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    written += b" " * (-len(written) % _ALIGNMENT)
    start = len(written).to_bytes(8, "little") + written
    digest = hashlib.sha256(start)
    with file.open("wb") as stream, ThreadPoolExecutor(1) as beside:
        stream.write(start)
        hashed: Future[None] | None = None
        for name in sorted(shapes):
            data = weights[name].numpy().data
            if hashed is not None:
                hashed.result()  # at most one tensor waits
            hashed = beside.submit(digest.update, data)
            stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    return digest.hexdigest()
