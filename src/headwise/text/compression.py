"""Decompresses files: gzip, xz and zstd are recognised by content, not by name.

Every decoder here bounds the output of one step, so a small file that decompresses to gigabytes (or to one huge line)
never takes more memory than a few blocks.

What damage is found: gzip and xz have a checksum of their content, so any. A zstd frame has one only if its writer
asked for it (the command `zstd` does, some libraries do not). Without one, a frame that is cut off, that cannot be
decompressed, or whose content is not as long as it declares is found; a changed byte inside of a literal is not.
"""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Generator, Iterator
from typing import Any, BinaryIO

BLOCK_BYTES = 1 << 20
MAX_BLOCK_BYTES = 2 * BLOCK_BYTES
MAGIC = {"gzip": b"\x1f\x8b\x08", "xz": b"\xfd7zXZ\x00", "zstd": b"\x28\xb5\x2f\xfd"}
SUFFIX = {"gzip": ".gz", "xz": ".xz", "zstd": ".zst"}
# A zstd block of 4 bytes can expand to 128 KB, and the library cannot bound its output: feed it small pieces.
ZSTD_STEP_BYTES = 2048


class StreamDamagedError(Exception):
    """A compressed stream ends early or cannot be decompressed; the caller adds the file and the line."""


def recognise(head: bytes, name: str) -> str | None:
    """Returns the compression format that `head`, the first bytes of a file, indicates; None for plain bytes."""
    for kind, magic in MAGIC.items():
        if head.startswith(magic):
            return kind
        # The file may end within its magic bytes. "(" alone is plain text unless the name says zstd.
        if 0 < len(head) < len(magic) and magic.startswith(head) and (kind != "zstd" or name.endswith(SUFFIX[kind])):
            return kind
    return None


def unpacked_blocks(stream: BinaryIO, name: str) -> Iterator[bytes]:
    """Yields the decompressed content in blocks of about BLOCK_BYTES, never more than MAX_BLOCK_BYTES."""
    head = stream.read(BLOCK_BYTES)
    kind = recognise(head, name)
    packed = _chunks(head, stream)
    return packed if kind is None else _gathered(_unpack(packed, kind))


def _chunks(head: bytes, stream: BinaryIO) -> Iterator[bytes]:
    while head:
        yield head
        head = stream.read(BLOCK_BYTES)


def _gathered(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Joins small pieces into whole blocks; yields everything before the damage, if any, and only then raises it."""
    parts: list[bytes] = []
    size = 0
    damage: StreamDamagedError | None = None
    try:
        for piece in pieces:
            parts.append(piece)
            size += len(piece)
            if size >= BLOCK_BYTES:
                block = b"".join(parts)
                for start in range(0, size, MAX_BLOCK_BYTES):
                    yield block[start : start + MAX_BLOCK_BYTES]
                parts, size = [], 0
    except StreamDamagedError as error:
        damage = error
    if size:
        yield b"".join(parts)
    if damage is not None:
        raise damage


def _unpack(chunks: Iterator[bytes], kind: str) -> Iterator[bytes]:
    """Decompresses all members (gzip), streams (xz) or frames (zstd) of a file, one after another."""
    start, feed = _DECODERS[kind]
    decoder = start()
    try:
        for chunk in chunks:
            while chunk:
                if decoder.eof:
                    chunk = chunk.lstrip(b"\0")  # tools pad with zeros between and after members
                    if not chunk:
                        break
                    decoder = start()
                chunk = yield from feed(decoder, chunk)
    except (zlib.error, lzma.LZMAError) as error:
        raise StreamDamagedError(f"the {kind} data is damaged ({error})") from error
    if not decoder.eof:
        raise StreamDamagedError(f"the {kind} data ends early (an incomplete copy or download)")


Feed = Generator[bytes, None, bytes]  # yields decompressed pieces, returns the rest of the chunk


def _feed_gzip(decoder: Any, chunk: bytes) -> Feed:
    while chunk and not decoder.eof:
        yield decoder.decompress(chunk, BLOCK_BYTES)
        chunk = decoder.unconsumed_tail
    return bytes(decoder.unused_data)


def _feed_xz(decoder: Any, chunk: bytes) -> Feed:
    yield decoder.decompress(chunk, BLOCK_BYTES)
    while not decoder.eof and not decoder.needs_input:
        yield decoder.decompress(b"", BLOCK_BYTES)
    return bytes(decoder.unused_data) if decoder.eof else b""


def _feed_zstd(decoder: Any, chunk: bytes) -> Feed:
    import zstandard  # imported where needed: most corpora are gzip or plain

    for start in range(0, len(chunk), ZSTD_STEP_BYTES):
        end = start + ZSTD_STEP_BYTES
        try:
            yield decoder.decompress(chunk[start:end])
        except zstandard.ZstdError as error:
            raise StreamDamagedError(f"the zstd data is damaged ({error})") from error
        if decoder.eof:
            return bytes(decoder.unused_data) + chunk[end:]
    return b""


def _start_zstd() -> Any:
    import zstandard

    return zstandard.ZstdDecompressor().decompressobj()


_DECODERS: dict[str, Any] = {
    "gzip": (lambda: zlib.decompressobj(wbits=31), _feed_gzip),
    "xz": (lzma.LZMADecompressor, _feed_xz),
    "zstd": (_start_zstd, _feed_zstd),
}
