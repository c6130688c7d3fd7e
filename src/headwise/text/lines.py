"""Reads the lines of one file in large blocks, and reports lines that cannot be read.

A line ends at LF; a CR directly before it belongs to the line ending. Nothing else ends a line: a lone CR, U+0085 and
U+2028 are ordinary characters. The end of the file ends the last line just as LF does, so a trailing line feed does not
begin an empty line. A byte-order mark at the start is not text. Every other byte is kept.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from headwise.errors import DataError
from headwise.text.compression import BLOCK_BYTES, StreamDamagedError, unpacked_blocks

if TYPE_CHECKING:
    from io import BufferedReader

MAX_LINE_BYTES = 10_000_000
STANDARD_INPUT = "-"
# How much of an overlong line is kept.
SHOWN_BYTES = 1000

# Called with each problem (its kind, and an error that names file and line) instead of raising it. Reading goes on: a
# bad line is yielded in a repaired form, so that line numbers stay right.
OnBad = Callable[[str, DataError], None]


def raise_or_report(on_bad: OnBad | None, kind: str, error: DataError) -> None:
    if on_bad is None:
        raise error
    on_bad(kind, error)


def display_name(file: str) -> str:
    return "standard input" if file == STANDARD_INPUT else file


def line_blocks(file: str, on_bad: OnBad | None = None) -> Iterator[tuple[int, list[str]]]:
    """Yields (number of the first line, lines) for a few thousand lines at a time."""
    with _opened(file) as stream:
        yield from _LineReader(display_name(file), on_bad).blocks(unpacked_blocks(stream, file))


def arriving_lines(on_bad: OnBad | None = None) -> Iterator[tuple[int, list[str]]]:
    """Yields the same for standard input (plain text), each block as soon as it arrives, to answer line by line."""
    stream = cast("BufferedReader", sys.stdin.buffer)
    blocks = iter(lambda: stream.read1(BLOCK_BYTES), b"")
    return _LineReader(display_name(STANDARD_INPUT), on_bad).blocks(blocks)


def read_lines(file: str) -> list[str]:
    """All lines of a file."""
    return [line for _, lines in line_blocks(file) for line in lines]


def aligned_lines(first: str, second: str, count: int = 512) -> Iterator[tuple[list[str], list[str]]]:
    """Reads two files that must have equally many lines, `count` lines of both at a time."""
    pair: tuple[list[str], list[str]] = ([], [])
    sides = (_each_line(file) for file in (first, second))
    for number, lines in enumerate(zip_longest(*sides), start=1):
        if None in lines:
            shorter, longer = (first, second) if lines[0] is None else (second, first)
            problem = f"ends after {number - 1:,} lines, but {longer} goes on; the files must be aligned"
            raise DataError(problem, file=shorter)
        for side, line in zip(pair, lines, strict=True):
            side.append(line)
        if len(pair[0]) == count:
            yield pair
            pair = ([], [])
    if pair[0]:
        yield pair


def _each_line(file: str) -> Iterator[str]:
    for _, lines in line_blocks(file):
        yield from lines


def _opened(file: str) -> AbstractContextManager[BinaryIO]:
    if file == STANDARD_INPUT:
        return nullcontext(sys.stdin.buffer)
    check_file(file)
    try:
        return open(file, "rb")
    except OSError as error:
        raise DataError(f"cannot be opened ({error.strerror}); check its permissions", file=file) from error


def check_file(file: str | Path) -> None:
    """Refuses a path that cannot be read, before any work begins."""
    if Path(file).is_dir():
        raise DataError(f"is a directory; name its files, for example {str(file).rstrip('/')}/*.gz", file=file)
    if not Path(file).exists():
        raise DataError("there is no such file; check the path (in a recipe it is relative to the recipe)", file=file)


class _LineReader:
    """Splits blocks of bytes into lines, decodes them, and reports problems by line."""

    def __init__(self, name: str, on_bad: OnBad | None) -> None:
        self.name, self.on_bad = name, on_bad
        self.number = 1  # of the next line
        self.pending: list[bytes] = []  # the beginning of a line whose end is not read yet
        self.pending_bytes = 0
        self.skipping = False  # inside an overlong line

    def blocks(self, raw_blocks: Iterator[bytes]) -> Iterator[tuple[int, list[str]]]:
        empty = True
        try:
            for block in raw_blocks:
                if empty:
                    empty = False
                    if not self._is_utf8(block[:4096]):
                        return
                    block = block.removeprefix(b"\xef\xbb\xbf")
                whole = self._whole_lines(block)
                if whole is not None:
                    yield self._decoded(whole)
        except StreamDamagedError as damage:
            # The line in which the stream broke off is incomplete: it is not yielded.
            problem = f"{damage}; the {self.number - 1} lines before it are intact: download or compress the file again"
            self._report("damaged", problem, self.number)
            return
        if self.pending:
            yield self._decoded(b"".join(self.pending))
        if self.number == 1:
            self._report("empty-file", "the file is empty; give a file with at least one line", None)

    def _whole_lines(self, block: bytes) -> bytes | None:
        """Returns everything read so far up to, but without, the last line feed; None if there is no line feed yet."""
        # A block is shorter than MAX_LINE_BYTES, so only its first line can be too long.
        first, last = block.find(b"\n"), block.rfind(b"\n")
        head = len(block) if first < 0 else first
        if not self.skipping and self.pending_bytes + head > MAX_LINE_BYTES:
            self._begin_skipping(block)
        if self.skipping:
            if first < 0:
                return None
            self.skipping = False
            block, last = block[first:], last - first
        if last < 0:
            self._append(block)
            return None
        self.pending.append(block[:last])
        whole = b"".join(self.pending)
        self.pending, self.pending_bytes = [], 0
        self._append(block[last + 1 :])
        return whole

    def _append(self, piece: bytes) -> None:
        if piece:
            self.pending.append(piece)
            self.pending_bytes += len(piece)

    def _begin_skipping(self, block: bytes) -> None:
        problem = (
            f"the line is longer than {MAX_LINE_BYTES:,} bytes; one sentence or paragraph per line is expected: "
            "split it, or check that the file has line feeds"
        )
        self._report("long-line", problem, self.number)
        beginning = (b"".join(self.pending) + block[:SHOWN_BYTES])[:SHOWN_BYTES]
        # A cut inside a character would look like an encoding error.
        self.pending = [beginning.decode("utf-8", "ignore").encode("utf-8")]
        self.pending_bytes = SHOWN_BYTES
        self.skipping = True

    def _decoded(self, whole: bytes) -> tuple[int, list[str]]:
        first = self.number
        try:
            text = whole.decode("utf-8")
        except UnicodeDecodeError as error:
            lines = self._repaired(whole, error)
        else:
            if "\r" in text:
                # `whole` lacks its last line feed: put it back so that a CR before it is removed too.
                text = (text + "\n").replace("\r\n", "\n")[:-1]
            lines = text.split("\n")
        self.number += len(lines)
        return first, lines

    def _repaired(self, whole: bytes, error: UnicodeDecodeError) -> list[str]:
        if self.on_bad is None:
            self._report_encoding(whole, error, self.number + whole.count(b"\n", 0, error.start))
        lines = []
        for number, line in enumerate(whole.split(b"\n"), start=self.number):
            line = line.removesuffix(b"\r")
            try:
                lines.append(line.decode("utf-8"))
            except UnicodeDecodeError as bad:
                self._report_encoding(line, bad, number)
                lines.append(line.decode("utf-8", "replace"))
        return lines

    def _report_encoding(self, data: bytes, error: UnicodeDecodeError, line: int) -> None:
        column = error.start - data.rfind(b"\n", 0, error.start)
        problem = (
            f"not UTF-8 (byte 0x{data[error.start]:02x} at byte {column} of the line); fix the line, or convert the "
            "file if it is in another encoding: iconv -f WINDOWS-1252 -t UTF-8"
        )
        self._report("encoding", problem, line)

    def _is_utf8(self, head: bytes) -> bool:
        encoding = _wide_encoding(head)
        if encoding is not None:
            self._report("encoding", f"is {encoding}, not UTF-8; convert it: iconv -f {encoding} -t UTF-8", None)
        return encoding is None

    def _report(self, kind: str, problem: str, line: int | None) -> None:
        raise_or_report(self.on_bad, kind, DataError(problem, file=self.name, line=line))


def _wide_encoding(head: bytes) -> str | None:
    """Recognises UTF-16 and UTF-32 by byte-order mark, or UTF-16 by the zero bytes between letters of an alphabet."""
    if head.startswith((b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")):
        return "UTF-32"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16"
    even, odd = head[0::2].count(0), head[1::2].count(0)
    for zeros, others, name in ((odd, even, "UTF-16LE"), (even, odd, "UTF-16BE")):
        if zeros >= 2 and zeros > 0.4 * (len(head) // 2) and others < 0.1 * zeros:
            return name
    return None
