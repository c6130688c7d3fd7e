"""Writes model.safetensors tensor by tensor: what is written need not be in memory at once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from pathlib import Path

from torch import Tensor

_ALIGNMENT = 8  # bytes, of the data's beginning


def write_tensors(file: Path, weights: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Writes float32 tensors, as the safetensors library does: in the order of their names, after a header."""
    header: dict[str, object] = {}
    place = 0
    for name in sorted(shapes):
        end = place + 4 * prod(shapes[name])
        header[name] = {"dtype": "F32", "shape": list(shapes[name]), "data_offsets": [place, end]}
        place = end
    written = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    written += b" " * (-len(written) % _ALIGNMENT)
    with file.open("wb") as stream:
        stream.write(len(written).to_bytes(8, "little"))
        stream.write(written)
        for name in sorted(shapes):
            stream.write(weights[name].numpy().data)
