"""ListOps: nested operations on lists of digits whose value is the label, for classifiers of long texts.

    [MAX 4 3 [MIN 2 3 ] 1 0 [MED 1 5 8 9 2 ] ]   ->   5

As in the Long Range Arena (Tay et al. 2021, arXiv 2011.04006; the task is of Nangia & Bowman 2018). The value can
depend on any token, however far away. `python -m headwise.text.listops FOLDER` writes train.csv, val.csv and test.csv;
the same seed always writes the same files.
"""

from __future__ import annotations

import argparse
import csv
import io
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from headwise.errors import UsageError
from headwise.files import write_whole

# The median of an even number of digits is the lower of the middle two, so that all values are digits.
OPERATIONS: dict[str, Callable[[Sequence[int]], int]] = {
    "MAX": max,
    "MIN": min,
    "MED": lambda values: sorted(values)[(len(values) - 1) // 2],
    "SM": lambda values: sum(values) % 10,
}
SHORTEST, LONGEST, DEEPEST = 500, 2000, 10
_MOST_ARGUMENTS = 10  # but in the innermost lists, which take what is left


@dataclass(frozen=True)
class Expression:
    """A text of space-separated tokens and its value, 0 to 9."""

    text: str
    value: int


def expressions(
    count: int, seed: int, *, shortest: int = SHORTEST, longest: int = LONGEST, deepest: int = DEEPEST
) -> Iterator[Expression]:
    """Draws expressions of `shortest` to `longest` tokens, nested at most `deepest` deep; the seed decides all."""
    if count < 0 or not 3 <= shortest <= longest or deepest < 1:
        raise UsageError(
            "expressions have at least 3 tokens and 1 level, and the longest is not below the shortest; not "
            f"{shortest} to {longest} tokens and {deepest} levels"
        )
    for number in range(count):
        chance = random.Random(f"{seed}/{number}")
        tokens: list[str] = []
        value = _draw(chance, chance.randint(shortest, longest), deepest, tokens)
        yield Expression(" ".join(tokens), value)


def _draw(chance: random.Random, length: int, levels: int, tokens: list[str]) -> int:
    """Appends an operation of exactly `length` tokens, its brackets included, and returns its value."""
    name = chance.choice(list(OPERATIONS))
    tokens.append(f"[{name}")
    values = []
    for size in _parts(chance, length - 2, levels):
        if size > 1:
            values.append(_draw(chance, size, levels - 1, tokens))
        else:
            values.append(chance.randrange(10))
            tokens.append(str(values[-1]))
    tokens.append("]")
    return OPERATIONS[name](values)


def _parts(chance: random.Random, length: int, levels: int) -> list[int]:
    """Tokens of each argument, `length` in all: 1 is a digit, 3 and more are an operation."""
    if levels == 1 or length < 4:
        return [1] * length
    cuts = sorted(chance.sample(range(1, length), min(length, chance.randint(2, _MOST_ARGUMENTS)) - 1))
    sizes = [high - low for low, high in zip([0, *cuts], [*cuts, length], strict=True)]
    return [part for size in sizes for part in ((1, 1) if size == 2 else (size,))]  # no operation has 2 tokens


def evaluate(text: str) -> int:
    """Computes the value of an expression from its text."""
    open_lists: list[tuple[str, list[int]]] = [("", [])]
    for token in text.split():
        if token.startswith("["):
            open_lists.append((token[1:], []))
        elif token == "]":
            name, values = open_lists.pop()
            open_lists[-1][1].append(OPERATIONS[name](values))
        else:
            open_lists[-1][1].append(int(token))
    return open_lists[0][1][0]


def write_table(path: Path, found: Iterator[Expression]) -> None:
    """Writes a CSV file with the columns text and label."""
    stream = io.StringIO()
    table = csv.writer(stream, lineterminator="\n")
    table.writerow(("text", "label"))
    table.writerows((one.text, one.value) for one in found)
    write_whole(path, stream.getvalue().encode())


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m headwise.text.listops", description="Writes ListOps as CSV files.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--train", type=int, default=20_000, help="expressions to train on")
    parser.add_argument("--held-out", type=int, default=1000, help="expressions to validate on, and as many to test on")
    parser.add_argument("--shortest", type=int, default=SHORTEST, help="tokens")
    parser.add_argument("--longest", type=int, default=LONGEST, help="tokens")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    if not 3 <= asked.shortest <= asked.longest or min(asked.train, asked.held_out) < 0:
        parser.error("lengths must be from 3 tokens, --longest at least --shortest, and counts at least 0")
    asked.folder.mkdir(parents=True, exist_ok=True)
    for part, (name, count) in enumerate((("train", asked.train), ("val", asked.held_out), ("test", asked.held_out))):
        found = expressions(count, 3 * asked.seed + part, shortest=asked.shortest, longest=asked.longest)
        write_table(asked.folder / f"{name}.csv", found)


if __name__ == "__main__":
    main()
