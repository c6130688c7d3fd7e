"""Writes a token store atomically, by one writer at a time.

The files are written to a temporary directory, synced, and only then renamed to the key. A crash leaves a directory
that is never mistaken for a store; the next writer of the same key removes it. A lock (released by the system when its
process ends) makes a second writer wait for the first and then use its result; where locks do not work, both write and
one rename wins.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from headwise.data.chunks import Chunk, Chunks
from headwise.data.store import MANIFEST, Manifest, Store, StoreDamagedError
from headwise.errors import WorkFailed
from headwise.files import sync
from headwise.text.tokenizer import Tokenizer

Progress = Callable[[int], None]  # called with the number of lines read so far


def cached_store(cache: Path, key: str, write: Callable[[Path], None]) -> Store:
    """Opens the store of this key; if it is missing or incomplete, has `write` fill a new directory first."""
    final = cache / key
    with suppress(StoreDamagedError):
        return Store(final)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _locked(cache / f"{key}.lock") as alone:
            with suppress(StoreDamagedError):  # written while this process waited for the lock
                return Store(final)
            for leftover in [final, *(cache.glob(f".{key}.*") if alone else ())]:
                shutil.rmtree(leftover, ignore_errors=True)
            _write_whole(final, write)
    except OSError as error:
        raise WorkFailed(
            f"cannot write the token store {final} ({error.strerror or error}); free some space or use another folder"
        ) from error
    return Store(final)


def _write_whole(final: Path, write: Callable[[Path], None]) -> None:
    partial = final.with_name(f".{final.name}.{uuid4().hex}")
    partial.mkdir()
    try:
        write(partial)
        sync(partial)
        try:
            partial.rename(final)
        except OSError:
            Store(final)  # without a working lock another writer may have been first; its store is just as good
        sync(final.parent)
    except StoreDamagedError as error:
        raise WorkFailed(f"{final} exists but is not a token store; remove it") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_files(
    directory: Path,
    chunks: Chunks,
    tokenizers: Mapping[str, Tokenizer],
    about: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    stream: Iterable[Chunk] | None = None,
) -> None:
    """Encodes a corpus into `directory`. `stream` may be `chunks` read ahead by a thread."""
    names = [f"{side}.{part}" for side in tokenizers for part in ("tokens", "offsets")]
    with ExitStack() as stack:
        files = {name: stack.enter_context(_HashedFile(directory / name)) for name in [*names, "lines"]}
        sides = {
            side: _SideWriter(tokenizer, files[f"{side}.tokens"], files[f"{side}.offsets"])
            for side, tokenizer in tokenizers.items()
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

    def __init__(self, tokenizer: Tokenizer, tokens: _HashedFile, offsets: _HashedFile) -> None:
        self.tokenizer, self.file, self.offsets = tokenizer, tokens, offsets
        self.kind = "uint16" if tokenizer.size <= 2**16 else "uint32"
        self.tokens = self.longest = 0
        offsets.write(np.zeros(1, dtype=np.int64))

    def write(self, texts: list[str]) -> None:
        ragged = self.tokenizer.encode_ragged(texts)
        self.file.write(ragged.tokens.astype(self.kind))
        self.offsets.write(self.tokens + np.cumsum(ragged.lengths, dtype=np.int64))
        self.tokens += len(ragged.tokens)
        self.longest = max(self.longest, int(ragged.lengths.max(initial=0)))


class _HashedFile:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._sum = hashlib.sha256()
        self.size = 0

    def __enter__(self) -> _HashedFile:
        self._file: BinaryIO = self._path.open("wb")
        return self

    def write(self, values: NDArray[Any]) -> None:
        data = np.ascontiguousarray(values).view(np.uint8).data if values.size else b""
        self._file.write(data)
        self._sum.update(data)
        self.size += len(data)

    def finish(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    @property
    def hash(self) -> str:
        return self._sum.hexdigest()

    def __exit__(self, *_: object) -> None:
        self._file.close()


@contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Waits for the lock; yields False if the file system (some network ones) has no locks."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:
            yield False
        else:
            yield True
