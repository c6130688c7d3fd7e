"""A shipped model translates a sentence to the same text whatever stands around it: alone, in batches, in any order."""

from __future__ import annotations

import gzip
import random
from itertools import islice
from pathlib import Path

import pytest
from counts import SENTENCES

from headwise.decoding.translator import Translator
from headwise.workflows.translate import open_translator

ENGINES = ("ctranslate2", "torch")  # the fast engine with int8 weights, and torch with float32


def english(corpora: Path, count: int) -> list[str]:
    with gzip.open(corpora / "multi30k/train.en.gz", "rt", encoding="utf-8") as stream:
        return [line.strip() for line in islice(stream, count)]


def translated(translator: Translator, sentences: list[str], order: list[int], sizes: list[int]) -> list[str]:
    """Translates in this order, in calls of these sizes, which are repeated; the texts in the original order."""
    texts, start, call = [""] * len(sentences), 0, 0
    while start < len(order):
        places = order[start : start + sizes[call % len(sizes)]]
        answers = translator.translate([sentences[place] for place in places])
        for place, answer in zip(places, answers, strict=True):
            texts[place] = answer.text
        start, call = start + len(places), call + 1
    return texts


def differing(sentences: list[str], engine: str) -> dict[str, list[int]]:
    """Which sentences were translated otherwise in each arrangement than alone."""
    translator, count = open_translator("multi30k-en-de", engine=engine), len(sentences)
    alone = translated(translator, sentences, list(range(count)), [1])
    draw = random.Random(4)
    arrangements = {
        "in batches": (list(range(count)), [64]),
        "shuffled, in calls of any size": (draw.sample(range(count), count), [draw.randint(1, 200) for _ in range(97)]),
        "longest first, at once": (sorted(range(count), key=lambda place: -len(sentences[place])), [count]),
    }
    found = {name: translated(translator, sentences, *how) for name, how in arrangements.items()}
    return {name: [i for i in range(count) if texts[i] != alone[i]] for name, texts in found.items()}


@pytest.mark.parametrize("engine", ENGINES)
def test_forty_sentences_in_any_arrangement_give_identical_text(corpora: Path, engine: str) -> None:
    assert set(map(len, differing(english(corpora, 40), engine).values())) == {0}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_ten_thousand_sentences_in_any_arrangement_give_identical_text(corpora: Path, engine: str) -> None:
    found = differing(english(corpora, SENTENCES), engine)
    print(f"\n{SENTENCES} sentences on {engine}: differing from alone: { {k: len(v) for k, v in found.items()} }")
    assert set(map(len, found.values())) == {0}, found
