"""Writes model.safetensors tensor by tensor, and hashes what it writes on the way: nothing is read back."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from torch import Tensor

_ALIGNMENT = 8  # bytes, of the data's beginning


def write_tensors(file: Path, weights: Mapping[str, Tensor]) -> str:
    """Writes float32 tensors, as the safetensors library does: in the order of their names, after a header.

    Returns the file's SHA-256, which is computed beside writing and waiting for the disk.
    """
    header: dict[str, object] = {}
    place = 0
    for name in sorted(weights):
        end = place + weights[name].nbytes
        header[name] = {"dtype": "F32", "shape": list(weights[name].shape), "data_offsets": [place, end]}
        place = end
    written = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    written += b" " * (-len(written) % _ALIGNMENT)
    digest = hashlib.sha256(len(written).to_bytes(8, "little") + written)
    with file.open("wb") as stream, ThreadPoolExecutor(1) as hashing:
        stream.write(len(written).to_bytes(8, "little") + written)
        for name in sorted(weights):
            data = weights[name].numpy().data
            hashing.submit(digest.update, data)
            stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    return digest.hexdigest()
