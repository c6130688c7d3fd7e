"""Connected digits: strings of recordings of single digits, for recognisers of speech that learn within minutes.

    python -m headwise.sound.digit_strings fsdd.tar.gz FOLDER

Reads the Free Spoken Digit Dataset, or any archive or folder with such a table: metadata.csv with file_name,
transcription, speaker and split (train or test). A string has recordings of one speaker, with short pauses. FOLDER gets

    train.csv      strings of 1 to 7 recordings; the short ones show what a digit is, the long ones where it stands
    val.csv        heard speakers; a tenth of the training recordings, which train.csv does not have
    test.csv       heard speakers; their test recordings
    unheard.csv    all recordings of the one speaker that the other three do not have

and the sounds. The same seed always writes the same files.
"""

from __future__ import annotations

import argparse
import csv
import io
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from headwise.errors import DataError
from headwise.files import write_whole
from headwise.sound.reading import Samples

TABLE, NEEDED = "metadata.csv", ("file_name", "transcription", "speaker", "split")
SHORTEST, LONGEST = 3, 7  # recordings of a string that is not trained on
LONGEST_PAUSE = 0.25  # seconds
VALIDATION_SHARE = 10  # one of so many training recordings of each digit of each speaker


@dataclass(frozen=True)
class Digit:
    """A recording of one digit."""

    word: str
    speaker: str
    split: str
    samples: Samples
    rate: int


@dataclass(frozen=True)
class DigitString:
    """A sound in which one speaker says several digits."""

    text: str
    speaker: str
    samples: Samples
    rate: int


def read_digits(place: Path) -> list[Digit]:
    """Reads all recordings of an archive or a folder, in the order of its table."""
    import soundfile

    files = _contents(place)
    if TABLE not in files:
        raise DataError(f"has no {TABLE}; give the archive or the folder of the Free Spoken Digit Dataset", file=place)
    rows = list(csv.DictReader(io.StringIO(files[TABLE].decode("utf-8"))))
    if not rows or not set(NEEDED) <= set(rows[0]):
        raise DataError(f"needs rows with the columns {', '.join(NEEDED)}", file=place / TABLE)
    digits = []
    for line, row in enumerate(rows, start=2):
        if row["file_name"] not in files:
            raise DataError(f"names {row['file_name']}, which is not there", file=place / TABLE, line=line)
        samples, rate = soundfile.read(io.BytesIO(files[row["file_name"]]), dtype="float32")
        digits.append(Digit(row["transcription"], row["speaker"], row["split"], samples, rate))
    return digits


def _contents(place: Path) -> dict[str, bytes]:
    """The files of a folder or of a tar archive, by name; nothing is unpacked."""
    if place.is_dir():
        return {path.name: path.read_bytes() for path in sorted(place.iterdir()) if path.is_file()}
    try:
        with tarfile.open(place) as archive:
            members = [member for member in archive if member.isfile()]
            return {PurePosixPath(m.name).name: stream.read() for m in members if (stream := archive.extractfile(m))}
    except (OSError, tarfile.TarError) as error:
        raise DataError(f"is neither a folder nor a tar archive ({error})", file=place) from None


def parts(digits: Sequence[Digit], unheard: str) -> dict[str, list[Digit]]:
    """Splits recordings so that no part has one of another, and `unheard` is in a part alone."""
    speakers = {digit.speaker for digit in digits}
    if unheard not in speakers or len(speakers) < 2:
        raise DataError(f"there is no speaker '{unheard}' beside others; choose one of {', '.join(sorted(speakers))}")
    found: dict[str, list[Digit]] = {"train": [], "val": [], "test": [], "unheard": []}
    seen: dict[tuple[str, str], int] = {}
    for digit in digits:
        if digit.speaker == unheard:
            found["unheard"].append(digit)
        elif digit.split == "test":
            found["test"].append(digit)
        else:
            number = seen[digit.speaker, digit.word] = seen.get((digit.speaker, digit.word), -1) + 1
            found["train" if number % VALIDATION_SHARE else "val"].append(digit)
    return found


def strings(
    digits: Sequence[Digit], count: int, seed: Sequence[int], shortest: int = SHORTEST, longest: int = LONGEST
) -> Iterator[DigitString]:
    """Draws strings: a speaker, a length, and digits that are all equally likely; the seed decides all.

    A length of n is drawn n times less often than one of 1, so that all lengths have the same share of the time.
    """
    lengths = np.arange(shortest, longest + 1)
    shares = 1 / lengths / (1 / lengths).sum()
    by_speaker: dict[str, dict[str, list[Digit]]] = {}
    for digit in digits:
        by_speaker.setdefault(digit.speaker, {}).setdefault(digit.word, []).append(digit)
    for number in range(count):
        rng = np.random.default_rng((*seed, number))
        speaker = str(rng.choice(sorted(by_speaker)))
        words = rng.choice(sorted(by_speaker[speaker]), rng.choice(lengths, p=shares))
        said = [takes[rng.integers(len(takes))] for word in words if (takes := by_speaker[speaker][str(word)])]
        rate = said[0].rate
        sound = [said[0].samples]
        for digit in said[1:]:
            sound += [np.zeros(round(rate * rng.uniform(0, LONGEST_PAUSE)), np.float32), digit.samples]
        yield DigitString(" ".join(digit.word for digit in said), speaker, np.concatenate(sound), rate)


def write_strings(folder: Path, name: str, found: Iterator[DigitString]) -> None:
    """Writes FOLDER/NAME/*.wav and, last, FOLDER/NAME.csv."""
    import soundfile

    (folder / name).mkdir(parents=True, exist_ok=True)
    stream = io.StringIO()
    table = csv.writer(stream, lineterminator="\n")
    table.writerow(NEEDED)
    for number, string in enumerate(found):
        file = f"{name}/{number:05}.wav"
        soundfile.write(folder / file, string.samples, string.rate, subtype="PCM_16")
        table.writerow((file, string.text, string.speaker, name))
    write_whole(folder / f"{name}.csv", stream.getvalue().encode())


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m headwise.sound.digit_strings", description="Writes strings of spoken digits, and their tables."
    )
    parser.add_argument("digits", type=Path, help="fsdd.tar.gz, or a folder with metadata.csv")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--unheard", default="theo", help="the speaker that training never hears")
    parser.add_argument("--train", type=int, default=16_000, help="strings to train on")
    parser.add_argument("--held-out", type=int, default=400, help="strings of each of the other parts")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    try:
        found = parts(read_digits(asked.digits), asked.unheard)
    except DataError as error:
        parser.error(str(error))
    for part, (name, digits) in enumerate(found.items()):
        trained = name == "train"
        drawn = strings(digits, asked.train if trained else asked.held_out, (asked.seed, part), 1 if trained else 3)
        write_strings(asked.folder, name, drawn)


if __name__ == "__main__":
    main()
