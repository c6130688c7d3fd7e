"""Translates a large file with several processes, on one machine or several that share a file system, part by part.

    OUT.parts/about.json        the input, model and options; if they change, the parts of the earlier job are removed
    OUT.parts/00000012.txt      the lines of part 12; appears only when it is complete
    OUT.parts/00000012.json     the numbers of its lines whose translation was cut off, if any; written before the text

The parts are the chunks that one process would translate, so the result is the same byte for byte. A finished part is
not translated again: after a crash, the same command resumes the work with any number of processes.
"""

from __future__ import annotations

import json
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from headwise.errors import WorkFailed
from headwise.files import check_place, whole_file
from headwise.text.lines import check_file
from headwise.training.distributed import World
from headwise.workflows.translate import Tell, input_chunks

# Translates chunks of source lines; yields, in order, the output lines of each and the indices of those cut off.
Render = Callable[[Iterable[list[str]]], Iterator[tuple[list[str], list[int]]]]


def translate_parts(
    world: World, file: str, output: str, about: dict[str, Any], render: Render, tell: Tell
) -> list[int]:
    """Translates every size-th part on each rank; rank 0 joins them into `output` and returns the lines cut off."""
    parts = Parts(Path(f"{output}.parts"))
    world.on_rank_0(lambda: _begin(parts, output, {**about, **_identity(file)}, tell))
    missing: deque[tuple[int, int]] = deque()  # (part, its first line) of what is being translated
    count = [0]

    def mine() -> Iterator[list[str]]:
        line = 1
        for number, chunk in enumerate(input_chunks(file, tell if world.leads else _ignore)):
            if number % world.size == world.rank and not parts.done(number):
                missing.append((number, line))
                yield chunk
            count[0], line = number + 1, line + len(chunk)

    for lines, cut_off in render(mine()):
        number, first = missing.popleft()
        parts.write(number, lines, [first + place for place in cut_off])
    world.wait_for_all()
    return parts.join(count[0], output) if world.leads else []


def _begin(parts: Parts, output: str, about: dict[str, Any], tell: Tell) -> dict[str, Any]:
    check_place(Path(output))
    done = parts.claim(about, tell)
    if done:
        tell(f"{done:,} parts are already translated and are kept ({parts.folder})")
    return {}


def _identity(file: str) -> dict[str, Any]:
    """Identifies a file by path, size and time of change, without reading it."""
    check_file(file)
    status = Path(file).stat()
    return {"input": str(Path(file).resolve()), "bytes": status.st_size, "changed": status.st_mtime_ns}


def _ignore(line: str) -> None: ...


class Parts:
    """The folder of parts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def claim(self, about: dict[str, Any], tell: Tell) -> int:
        """Claims the folder for this job: removes the parts of another job, or counts the finished ones of this job."""
        note, text = self.folder / "about.json", json.dumps(about, sort_keys=True, ensure_ascii=False, indent=2)
        try:
            if note.is_file() and note.read_text(encoding="utf-8") == text:
                return len(list(self.folder.glob("*.txt")))
            if note.is_file():
                tell(f"{self.folder} has parts of another job (other text, model or options); they are removed")
                shutil.rmtree(self.folder)
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise WorkFailed(f"could not write {self.folder}: {error.strerror}; choose another --output") from error
        with whole_file(note) as stream:
            stream.write(text)
        return 0

    def done(self, number: int) -> bool:
        return self._text(number).is_file()

    def write(self, number: int, lines: list[str], cut_off: list[int]) -> None:
        if cut_off:
            with whole_file(self._text(number).with_suffix(".json")) as stream:
                json.dump(cut_off, stream)
        with whole_file(self._text(number)) as stream:
            stream.writelines(f"{line}\n" for line in lines)

    def join(self, count: int, output: str) -> list[int]:
        cut_off: list[int] = []
        with whole_file(output) as stream:
            for number in range(count):
                try:
                    with self._text(number).open(encoding="utf-8", newline="\n") as part:
                        shutil.copyfileobj(part, stream)
                except OSError as error:
                    raise WorkFailed(
                        f"{self._text(number)} is missing ({error.strerror}); run the command again"
                    ) from error
                notes = self._text(number).with_suffix(".json")
                cut_off += json.loads(notes.read_text(encoding="utf-8")) if notes.is_file() else []
        shutil.rmtree(self.folder, ignore_errors=True)
        return cut_off

    def _text(self, number: int) -> Path:
        return self.folder / f"{number:08d}.txt"
