"""model.safetensors before any of it is loaded: its header against config.json, and its numbers. Needs no torch.

8 bytes    length of the header
header     JSON: name, type, shape and place of each tensor
data       the tensors, one after another
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

from safetensors import SafetensorError, safe_open

from headwise.bundle.declaration import LARGEST_SETTING
from headwise.errors import ModelError
from headwise.files import opened_file

STORED = {"float32": "F32", "float16": "F16"}  # by a bundle's precision: what the header says
_BLOCK = 1 << 20  # bytes; of whole numbers
_MORE_ROWS = 8  # a published model may have no vectors for a few special tokens

Shapes = dict[str, tuple[int, ...]]


def stored_shapes(file: Path, precision: str) -> Shapes:
    """Every tensor's shape, from the header alone; the type must be the one that config.json declares."""
    try:
        with opened_file(file):
            pass  # the library would wait for a pipe
        with safe_open(file, framework="np") as stored:
            slices = {name: stored.get_slice(name) for name in stored.keys()}  # noqa: SIM118
            kinds = {name: piece.get_dtype() for name, piece in slices.items()}
            shapes = {name: tuple(piece.get_shape()) for name, piece in slices.items()}
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ModelError(f"{file} cannot be read: {reason}; take another copy of the model") from error
    for name, kind in kinds.items():
        if kind != STORED[precision]:
            raise ModelError(f"{file} does not fit its config.json: {name} should be {precision}, is {kind}")
    if not shapes:
        raise ModelError(f"{file} has no weights in it; take another copy of the model")
    return shapes


def check_sizes(file: Path, shapes: Shapes, architecture: Mapping[str, Any], sizes: tuple[str, ...]) -> None:
    """Refuses an architecture that these tensors cannot be of, because it declares more than there is.

    That costs next to nothing, and bounds whatever is built from the architecture. Whether every tensor has its shape
    is seen when the network is built without memory (`headwise.bundle.weights.check_weights`).
    """
    largest = max(max(shape, default=1) for shape in shapes.values())
    rows = sum(max(shape, default=1) for shape in shapes.values())  # a vocabulary may be spread over several tables
    layers = 0
    for name, value in architecture.items():
        if not isinstance(value, int) or isinstance(value, bool):
            continue
        if name.endswith("layers"):
            layers += value
        most = LARGEST_SETTING
        if name in sizes:
            most = rows + _MORE_ROWS
        elif name.endswith(("_dim", "_heads")):
            most = largest
        if value > most:
            raise ModelError(f"{file} does not fit its config.json, which declares {name} = {value}; take another copy")
    if layers > len(shapes):
        raise ModelError(f"{file.parent} declares {layers} layers, but has {len(shapes)} tensors of weights")


def checked_hash(file: Path, precision: str) -> str:
    """SHA-256 of the file, which is read once; the numbers in it must be finite."""
    digest = hashlib.sha256()
    try:
        with opened_file(file) as stream:
            for block in _blocks(stream, digest):
                if not _finite(block, precision):
                    raise ModelError(f"{file} has weights that are NaN or infinite; take another copy of the model")
    except OSError as error:
        raise ModelError(f"{file} cannot be read: {error.strerror}; take another copy of the model") from error
    return digest.hexdigest()


def _blocks(stream: BinaryIO, digest: Any) -> Iterator[bytes]:
    """Blocks of the data; the header before it is only hashed."""
    start = stream.read(8)
    header = stream.read(int.from_bytes(start, "little"))
    digest.update(start)
    digest.update(header)
    while block := stream.read(_BLOCK):
        digest.update(block)
        yield block


def _finite(block: bytes, precision: str) -> bool:
    """No number has all bits of its exponent set: those are infinity and NaN."""
    import numpy as np

    if precision == "float16":
        return not bool(((np.frombuffer(block, dtype=np.uint16) & 0x7C00) == 0x7C00).any())
    return bool(np.isfinite(np.frombuffer(block, dtype=np.float32)).all())


def count_weights(shapes: Shapes) -> int:
    return sum(prod(shape) for shape in shapes.values())
