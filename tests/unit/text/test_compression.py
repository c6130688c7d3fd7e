"""What is found of damage in compressed text, and what cannot be."""

from __future__ import annotations

import gzip
import io
import lzma
import random
from contextlib import suppress

import pytest
import zstandard

from headwise.text.compression import StreamDamagedError, unpacked_blocks

TEXT = "".join(f"line {number} of some text\n" for number in range(400)).encode()


def unpacked(packed: bytes) -> bytes:
    return b"".join(unpacked_blocks(io.BytesIO(packed), "x"))


def zstd(checksum: bool) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=checksum, write_content_size=True).compress(TEXT)


def silently_wrong(packed: bytes, count: int = 300) -> int:
    """How many flipped bits give other text without an error. The first bytes say what the format is."""
    draw, wrong = random.Random(5), 0
    for _ in range(count):
        damaged = bytearray(packed)
        damaged[draw.randrange(10, len(packed))] ^= 1 << draw.randrange(8)
        with suppress(StreamDamagedError):
            wrong += unpacked(bytes(damaged)) != TEXT
    return wrong


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, lambda text: zstd(True)])
def test_with_a_checksum_every_flipped_bit_is_found(pack: object) -> None:
    packed = pack(TEXT)  # type: ignore[operator]
    assert unpacked(packed) == TEXT
    assert silently_wrong(packed) == 0


def test_a_zstd_frame_without_a_checksum_is_only_known_to_have_its_length() -> None:
    assert unpacked(zstd(False)) == TEXT
    assert silently_wrong(zstd(False)) > 0
    for end in range(5, len(zstd(False)), 7):
        with pytest.raises(StreamDamagedError, match=r"ends early|damaged"):
            unpacked(zstd(False)[:end])
