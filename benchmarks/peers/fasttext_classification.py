"""fastText's supervised classifier, run by benchmarks/classification.py.

Its rate, the number of epochs and the use of pieces of words: what is best on the validation table. Text of a script
without spaces is given character by character. One thread, so that a run can be repeated.
"""

from __future__ import annotations

import itertools
import re
import tempfile
from pathlib import Path

import fasttext
from measure_classification import main, read_table, share_right

GRID = tuple(itertools.product((0.5, 1.0), (10, 30), ((0, 0), (2, 5))))  # rate, epochs, pieces of words
HAN = re.compile(r"([\u3400-\u9fff])")


def answer(request: dict) -> dict:
    texts, labels = read_table(request["train"])
    validation, expected = read_table(request["validation"])
    test, _ = read_table(request["test"])
    codes = {label: f"__label__{code}" for code, label in enumerate(sorted(set(labels)))}
    names = {code: label for label, code in codes.items()}
    best: tuple[float, list[str], str] = (-1.0, [], "")
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "train.txt"
        lines = (f"{codes[label]} {words(text)}" for text, label in zip(texts, labels, strict=True))
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        for rate, epochs, (least, most) in GRID:
            model = fasttext.train_supervised(
                str(file), lr=rate, epoch=epochs, minn=least, maxn=most, wordNgrams=2, bucket=200_000, thread=1,
                verbose=0, seed=1,
            )  # fmt: skip
            right = share_right(predict(model, validation, names), expected)
            if right > best[0]:
                chosen = f"rate {rate:g}, {epochs} epochs, " + (f"pieces of {least} to {most}" if most else "words")
                best = right, predict(model, test, names), chosen
    return {"labels": best[1], "validation": best[0], "chosen": best[2]}


def words(text: str) -> str:
    """Lower case, punctuation and Han characters by themselves, on one line."""
    return " ".join(re.sub(r"([.,;:!?()\"'。，！？；：])", r" \1 ", HAN.sub(r" \1 ", text.lower())).split())


def predict(model: fasttext.FastText._FastText, texts: list[str], names: dict[str, str]) -> list[str]:
    found, _ = model.predict([words(text) for text in texts])
    return [names[answers[0]] for answers in found]


if __name__ == "__main__":
    main(answer)
