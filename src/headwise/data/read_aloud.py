"""Recordings of sentences that espeak-ng reads aloud: for recognisers of speech where nobody has recorded any.

    python -m headwise.data.read_aloud train.txt FOLDER/train [--voices en-us en-gb] [--most-words 6]

Writes FOLDER/train/*.wav and, last, FOLDER/train.csv (file_name, transcription, speaker). Each sentence is read once
by one of the voices, at a speed and pitch of its own; the same seed always draws the same. The transcription is what
can be heard: words in lower case, without punctuation. Sentences with anything but words are left out, since '1998' or
'km/h' can be read in several ways.
"""

from __future__ import annotations

import argparse
import csv
import io
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from headwise.errors import DataError, HeadwiseError, UsageError
from headwise.files import write_whole
from headwise.text.lines import read_lines

PROGRAM = "espeak-ng"
COLUMNS = ("file_name", "transcription", "speaker")
SPEEDS, PITCHES = (140, 200), (30, 70)  # words per minute; espeak's scale from 0 to 99
_SEVERAL = re.compile(r"[^\w\s'’.,!?;:\"“”-]|[\d_]|-")  # what may be read in several ways, or as several words
_MARKS = re.compile(r"[.,!?;:\"“”]")


def heard(sentence: str) -> str | None:
    """What is heard of a sentence; None if that is not certain."""
    if _SEVERAL.search(sentence):
        return None
    return " ".join(_MARKS.sub(" ", sentence.replace("’", "'").lower()).split()) or None


def spoken(sentences: Iterable[str], most_words: int) -> Iterator[tuple[str, str]]:
    """Yields the sentences that are read, each once, with what is heard of them."""
    seen = set()
    for sentence in sentences:
        text = heard(sentence)
        if text is not None and len(text.split()) <= most_words and text not in seen:
            seen.add(text)
            yield sentence, text


def read_aloud(pairs: Iterable[tuple[str, str]], folder: Path, voices: Sequence[str], seed: int = 1) -> None:
    """Lets espeak-ng read (sentence, heard) pairs into FOLDER/*.wav, and then writes the table FOLDER.csv."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise UsageError(f"{PROGRAM} is not installed; on Debian: apt-get install {PROGRAM}")
    folder.mkdir(parents=True, exist_ok=True)
    stream = io.StringIO()
    table = csv.writer(stream, lineterminator="\n")
    table.writerow(COLUMNS)
    for number, (sentence, text) in enumerate(pairs):
        rng = np.random.default_rng((seed, number))
        voice = str(rng.choice(voices))
        file = folder / f"{number:06}.wav"
        command = [program, "-v", voice, "-s", str(rng.integers(*SPEEDS)), "-p", str(rng.integers(*PITCHES))]
        done = subprocess.run(
            [*command, "-w", str(file), "--stdin"], input=sentence, text=True, capture_output=True, check=False
        )
        if done.returncode or not file.is_file():
            said = (done.stderr.strip().splitlines() or ["it wrote nothing"])[-1]
            raise UsageError(f"{PROGRAM} cannot read with the voice '{voice}': {said}; see {PROGRAM} --voices")
        table.writerow((f"{folder.name}/{file.name}", text, voice))
    write_whole(folder.with_name(f"{folder.name}.csv"), stream.getvalue().encode())


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m headwise.data.read_aloud", description="Lets espeak-ng read sentences, for training on them."
    )
    parser.add_argument("text", type=Path, help="one sentence per line, plain or compressed")
    parser.add_argument("folder", type=Path, help="of the recordings; their table stands beside it")
    parser.add_argument("--voices", nargs="+", default=["en-us"], help="of espeak-ng, for example en-us+f3")
    parser.add_argument("--most-words", type=int, default=12, help="longer sentences are left out")
    parser.add_argument("--count", type=int, help="read so many sentences and no more")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    try:
        found = list(spoken(read_lines(asked.text), asked.most_words))[: asked.count]
        if not found:
            raise DataError(f"has no sentence of at most {asked.most_words} plain words", file=asked.text)
        read_aloud(found, asked.folder, asked.voices, asked.seed)
    except HeadwiseError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
