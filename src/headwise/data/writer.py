"""Writes a token store: every side of a corpus as ids, with sizes and hashes in the manifest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from headwise.data.cached import HashedFile, cached
from headwise.data.chunks import Chunk, TextStream
from headwise.data.store import MANIFEST, Manifest, Store
from headwise.files import sync
from headwise.text.ragged import Ragged


class Encoder(Protocol):
    """Turns the texts of one side into numbers below `size`: a tokenizer, or the codes of labels."""

    @property
    def size(self) -> int: ...

    def encode_ragged(self, texts: Sequence[str]) -> Ragged: ...


Progress = Callable[[int], None]  # called with the number of lines read so far


def cached_store(cache: Path, key: str, write: Callable[[Path], None]) -> Store:
    """Opens the token store of this key, or writes it first."""
    return cached(cache, key, write, Store, "token store")


def write_files(
    directory: Path,
    chunks: TextStream,
    encoders: Mapping[str, Encoder],
    about: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    stream: Iterable[Chunk] | None = None,
) -> None:
    """Encodes a corpus into `directory`. `stream` may be `chunks` read ahead by a thread."""
    names = [f"{side}.{part}" for side in encoders for part in ("tokens", "offsets")]
    with ExitStack() as stack:
        files = {name: stack.enter_context(HashedFile(directory / name)) for name in [*names, "lines"]}
        sides = {
            side: _SideWriter(encoder, files[f"{side}.tokens"], files[f"{side}.offsets"])
            for side, encoder in encoders.items()
        }
        for chunk in chunks if stream is None else stream:
            for side, writer in sides.items():
                writer.write(chunk.texts[side])
            files["lines"].write(chunk.lines.astype(np.int64))
            if progress is not None:
                progress(chunks.counts.lines)
        for file in files.values():
            file.finish()
        manifest = Manifest(
            sides={side: writer.kind for side, writer in sides.items()},
            sentences=chunks.counts.kept,
            tokens={side: writer.tokens for side, writer in sides.items()},
            longest={side: writer.longest for side, writer in sides.items()},
            files=chunks.files,
            dropped=chunks.counts.dropped,
            sizes={name: file.size for name, file in files.items()},
            hashes={name: file.hash for name, file in files.items()},
            about=dict(about or {}),
        )
    manifest.write(directory / MANIFEST)
    sync(directory / MANIFEST)


class _SideWriter:
    """Encodes one side. Ids take two bytes each if the vocabulary is small enough."""

    def __init__(self, encoder: Encoder, tokens: HashedFile, offsets: HashedFile) -> None:
        self.encoder, self.file, self.offsets = encoder, tokens, offsets
        self.kind = "uint16" if encoder.size <= 2**16 else "uint32"
        self.tokens = self.longest = 0
        offsets.write(np.zeros(1, dtype=np.int64))

    def write(self, texts: list[str]) -> None:
        ragged = self.encoder.encode_ragged(texts)
        self.file.write(ragged.tokens.astype(self.kind))
        self.offsets.write(self.tokens + np.cumsum(ragged.lengths, dtype=np.int64))
        self.tokens += len(ragged.tokens)
        self.longest = max(self.longest, int(ragged.lengths.max(initial=0)))
