"""What all contestants of benchmarks/classification.py share: tables of texts and labels, a request, an answer.

A contestant is a script that calls `main(answer)`. Standard input: a request in JSON; standard output: a line of it.
A request for labels has the tables `train`, `validation` and `test`, and is answered with the labels of the test rows.
Only the standard library is used here: a peer's environment has no Headwise.
"""

from __future__ import annotations

import csv
import gzip
import json
import sys
import time
from collections.abc import Callable, Sequence

Answer = dict


def main(answer: Callable[[dict], Answer]) -> None:
    request = json.load(sys.stdin)
    began = time.perf_counter()
    found = answer(request)
    print(json.dumps({"seconds": time.perf_counter() - began, **found}, ensure_ascii=False), flush=True)


def read_table(file: str) -> tuple[list[str], list[str]]:
    """The texts and the labels of a CSV file."""
    with gzip.open(file, "rt", encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    return [row["text"] for row in rows], [row["label"] for row in rows]


def share_right(answers: Sequence[str], labels: Sequence[str]) -> float:
    return sum(answer == label for answer, label in zip(answers, labels, strict=True)) / len(labels)
