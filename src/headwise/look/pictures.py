"""Draws panels as PNG and SVG with matplotlib, which is imported when the first picture is drawn."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headwise.errors import UsageError
from headwise.files import write_whole
from headwise.look import fonts
from headwise.look.alignment import Alignment
from headwise.look.panels import Floats, Panel
from headwise.nn import causal_mask, sinusoidal_positions

DOTS = 120  # per inch, in a PNG
MOST_DOTS = 5500  # per side, beyond which viewers become slow
LONGEST_SIDE = 60.0  # inches
CELL = 0.2  # inches per cell with a label of normal size
SMALLEST_CELL = 0.13  # inches per cell with a small label; smaller cells have no labels
LABEL = 0.085  # approximate inches per character of a label
SMALLEST_MATRIX = 1.3  # inches
MOST_NUMBERS = 16  # rows or columns up to which the values are written into the cells
MOST_LINES = 60  # rows or columns up to which a mask has grid lines
LONGEST_LABEL = 18  # characters
LEGEND = 0.75  # inches for the colour scale


def panels_picture(panels: Sequence[Panel], path: str | Path) -> None:
    """Draws all layers and heads of the panels: one row of matrices per layer, one column per head."""
    single = all(panel.values.shape[:2] == (1, 1) for panel in panels)
    texts = [text for panel in panels for text in (*panel.rows, *panel.columns)]
    arrange = _side_by_side if single else _grid
    draw(path, texts, lambda figure: arrange(figure, panels))


def links_picture(alignment: Alignment, path: str | Path) -> None:
    """Draws source words on the left, target words on the right, and a line per link, darker for larger weights."""
    draw(path, [*alignment.source_words, *alignment.target_words], lambda figure: _links(figure, alignment))


def positions_picture(length: int, model_dim: int, path: str | Path) -> None:
    """Draws the sines and cosines of the paper's section 3.5: one row per position, one column per dimension."""
    values = sinusoidal_positions(length, model_dim).numpy()[None, None]
    rows, columns = [str(i) for i in range(length)], [str(i) for i in range(model_dim)]
    panels_picture([Panel("positions", "Positions", values, rows, columns, "position", "dimension", "signed")], path)


def mask_picture(length: int, path: str | Path, padding: int = 0) -> None:
    """Draws which positions may attend to which in a decoder; the last `padding` positions are padding."""
    allowed = causal_mask(length).numpy() & (np.arange(length) < length - padding)
    numbers = [str(i) for i in range(length)]
    values = allowed.astype(np.float32)[None, None]
    panels_picture([Panel("mask", "May attend", values, numbers, numbers, "position", "sees", "mask")], path)


def sound_picture(
    spectrogram: Floats, weights: Floats, tokens: Sequence[str], seconds: float, title: str, path: str | Path
) -> None:
    """Draws a spectrogram (frames, mels), and below it the attention of each token (T, S) over the same time."""
    draw(path, [*tokens, title], lambda figure: _sound(figure, spectrogram, weights, tokens, seconds, title))


# ---- the file


def draw(path: str | Path, texts: Iterable[str], fill: Callable[[Any], None]) -> None:
    path = Path(path)
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("png", "svg"):
        raise UsageError(f"{path}: the name of the picture must end in .png or .svg")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    # An SVG keeps text as text: it can be searched, and the viewer may have fonts that are missing here.
    families = fonts.families_for(texts) if kind == "png" else [*fonts.available_families(texts), "sans-serif"]
    settings: dict[Any, Any] = {
        "font.family": families, "font.size": 8.0, "text.parse_math": False, "svg.fonttype": "none",
        "svg.hashsalt": "headwise", "axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False,
        "axes.spines.bottom": False, "xtick.major.size": 0.0, "ytick.major.size": 0.0, "axes.titlesize": 9.0,
    }  # fmt: skip
    content = io.BytesIO()
    with rc_context(settings), fonts.quiet():
        figure = Figure(facecolor="white")
        fill(figure)
        metadata = {"Date": None} if kind == "svg" else None  # equal input gives an equal file
        dots = min(DOTS, MOST_DOTS / max(figure.get_size_inches()))
        figure.savefig(content, format=kind, dpi=dots, bbox_inches="tight", pad_inches=0.15, metadata=metadata)
    write_whole(path, content.getvalue())


# ---- sound


def _sound(
    figure: Any, spectrogram: Floats, weights: Floats, tokens: Sequence[str], seconds: float, title: str
) -> None:
    rows = max(1.5, CELL * len(tokens))
    figure.set_size_inches(11.0, rows + 2.6)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(1.6, rows), gridspec_kw={"hspace": 0.06})
    upper.imshow(
        spectrogram.T, origin="lower", aspect="auto", cmap="magma", extent=(0, seconds, 0, spectrogram.shape[1])
    )
    upper.set_ylabel("mel bin")
    upper.set_title(title)
    # Each row in shades of its own largest weight: what a token attends to most is as dark in all rows.
    shares = weights / np.maximum(weights.max(axis=1, keepdims=True), 1e-9)
    lower.imshow(shares, aspect="auto", cmap="Blues", interpolation="none", extent=(0, seconds, len(tokens), 0))
    lower.set_yticks(np.arange(len(tokens)) + 0.5, [label[:LONGEST_LABEL] for label in tokens])
    lower.set_xlabel("seconds")


# ---- matrices


@dataclass(frozen=True)
class _Size:
    """The size of one matrix in inches, and whether there is room for labels."""

    width: float
    height: float
    labelled: bool
    font: float = 8.0  # points


def _size(panel: Panel, cell: float, most: float, unlabelled: float) -> _Size:
    """Fits cells of `cell` inches into at most `most`; `unlabelled` is the size of a matrix without labels."""
    rows, columns = max(1, len(panel.rows)), max(1, len(panel.columns))
    if panel.name == "positions":  # numbers, which do not all need a label
        return _Size(min(max(4.0, 0.1 * columns), 10.0), min(max(3.0, 0.1 * rows), 8.0), labelled=False)
    cell = min(cell, most / max(rows, columns))
    labelled = cell >= SMALLEST_CELL
    if not labelled:
        cell = unlabelled / max(rows, columns)
    width, height = (max(SMALLEST_MATRIX, cell * count) for count in (columns, rows))
    return _Size(width, height, labelled, font=8.0 if cell >= CELL else 6.5)


def _side_by_side(figure: Any, panels: Sequence[Panel]) -> None:
    """Draws one matrix per panel, large enough to read its labels."""
    numbers = all(max(len(p.rows), len(p.columns)) <= MOST_NUMBERS for p in panels)
    sizes = [_size(panel, 0.36 if numbers else CELL, LONGEST_SIDE / len(panels), 7.0) for panel in panels]
    gaps = [(_label_width(p.rows) if s.labelled else 0.2) + 0.45 for p, s in zip(panels, sizes, strict=True)]
    foot = max(_label_width(p.columns) if s.labelled else 0.2 for p, s in zip(panels, sizes, strict=True)) + 0.45
    width = sum(size.width for size in sizes) + sum(gaps) + LEGEND * len(panels)
    height = max(size.height for size in sizes) + foot
    figure.set_size_inches(width, height)
    left = 0.0
    for panel, size, gap in zip(panels, sizes, gaps, strict=True):
        left += gap
        bottom = height - foot - size.height
        axes = figure.add_axes((left / width, bottom / height, size.width / width, size.height / height))
        scale = _matrix(axes, panel, 0, 0)
        _write_tokens(axes, panel, size)
        axes.set_title(_full_title(panel), pad=7)
        if numbers and panel.scale != "mask":
            _write_numbers(axes, panel)
        left += size.width
        if panel.scale != "mask":
            _legend(figure, scale, ((left + 0.12) / width, bottom / height, 0.12 / width, size.height / height))
        left += LEGEND


def _full_title(panel: Panel) -> str:
    if panel.scale != "weights" or not panel.numbered:
        return panel.title
    return f"{panel.title}, layer {panel.first_layer}, head {panel.first_head}"


def _grid(figure: Any, panels: Sequence[Panel]) -> None:
    """Draws every layer and head. Labels are at the left and at the bottom of each panel's block."""
    heads = max(panel.values.shape[1] for panel in panels)
    layers = sum(panel.values.shape[0] for panel in panels)
    sizes = [_size(panel, SMALLEST_CELL, LONGEST_SIDE / max(heads, layers) - 0.2, 2.6) for panel in panels]
    sized = list(zip(panels, sizes, strict=True))
    gap, left = 0.14, max(_label_width(p.rows) if s.labelled else 0.0 for p, s in sized) + 0.85
    feet = [(_label_width(p.columns) if s.labelled else 0.0) + 0.4 for p, s in sized]
    width = left + max((s.width + gap) * p.values.shape[1] for p, s in sized)
    height = sum((s.height + gap) * p.values.shape[0] + 0.45 for p, s in sized) + sum(feet)
    figure.set_size_inches(width, height)
    top = height
    for panel, size, foot in zip(panels, sizes, feet, strict=True):
        figure.text(left / width, (top - 0.02) / height, panel.title, fontsize=12, weight="bold", va="top")
        top -= 0.45
        for layer in range(panel.values.shape[0]):
            for head in range(panel.values.shape[1]):
                x, y = left + head * (size.width + gap), top - size.height
                axes = figure.add_axes((x / width, y / height, size.width / width, size.height / height))
                _matrix(axes, panel, layer, head)
                _write_grid_labels(axes, panel, size, layer, head)
            top -= size.height + gap
        top -= foot


def _matrix(axes: Any, panel: Panel, layer: int, head: int) -> Any:
    """Draws one matrix and returns its colour scale."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    values = panel.values[layer, head]
    limit = _limit(values) if panel.scale != "mask" else 1.7  # draws a mask in a medium shade
    low, colours = (-limit, "RdBu") if panel.scale == "signed" else (0.0, "Blues")
    scale = ScalarMappable(Normalize(low, limit), colours)
    # Coloured before it is enlarged: matplotlib enlarges bytes several times faster than floats.
    axes.imshow(scale.to_rgba(values, bytes=True), aspect="auto", interpolation="none")
    for side in axes.spines.values():
        side.set_visible(True)
        side.set_color("#b8bec9")
        side.set_linewidth(0.6)
    if panel.scale == "mask" and max(values.shape) <= MOST_LINES:
        axes.set_xticks(np.arange(0.5, values.shape[1] - 1), minor=True)
        axes.set_yticks(np.arange(0.5, values.shape[0] - 1), minor=True)
        axes.grid(which="minor", color="white", linewidth=1.0)
        axes.tick_params(which="minor", size=0)
    return scale


def _limit(values: Floats) -> float:
    return float(np.abs(values).max(initial=0.0)) or 1.0


def _write_tokens(axes: Any, panel: Panel, size: _Size) -> None:
    if not size.labelled:
        axes.set_xlabel(panel.column_title)
        axes.set_ylabel(panel.row_title)
        return
    _label_rows(axes, panel, size)
    _label_columns(axes, panel, size)
    axes.set_xlabel(panel.column_title, color="#555b66")
    axes.set_ylabel(panel.row_title, color="#555b66")


def _write_grid_labels(axes: Any, panel: Panel, size: _Size, layer: int, head: int) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    if layer == 0:
        axes.set_title(f"head {panel.first_head + head}", pad=3, fontsize=8)
    if head == 0:
        axes.set_ylabel(f"layer {panel.first_layer + layer}", fontsize=8)
        if size.labelled:
            _label_rows(axes, panel, size)
    if layer == panel.values.shape[0] - 1 and size.labelled:
        _label_columns(axes, panel, size)


def _label_rows(axes: Any, panel: Panel, size: _Size) -> None:
    axes.set_yticks(range(len(panel.rows)), [_short(text) for text in panel.rows], fontsize=size.font)


def _label_columns(axes: Any, panel: Panel, size: _Size) -> None:
    labels = [_short(text) for text in panel.columns]
    axes.set_xticks(range(len(labels)), labels, rotation=90, fontsize=size.font)


def _write_numbers(axes: Any, panel: Panel) -> None:
    values = panel.values[0, 0]
    limit = _limit(values)
    for (row, column), value in np.ndenumerate(values):
        if value:
            colour = "white" if abs(value) > 0.6 * limit else "#27303f"
            axes.text(column, row, f"{value:.2f}", ha="center", va="center", color=colour, fontsize=6.5)


def _legend(figure: Any, scale: Any, box: tuple[float, float, float, float]) -> None:
    bar = figure.colorbar(scale, cax=figure.add_axes(box))
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=7)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"


def _label_width(labels: Sequence[str]) -> float:
    """Estimates the width of the longest label in inches; ideographs are twice as wide."""
    longest = max((sum(2 if ord(c) >= 0x2E80 else 1 for c in _short(text)) for text in labels), default=0)
    return LABEL * longest


# ---- alignments


def _links(figure: Any, alignment: Alignment) -> None:
    count = max(len(alignment.source_words), len(alignment.target_words), 1)
    step = min(0.26, LONGEST_SIDE / count)
    left, right = _label_width(alignment.source_words) + 0.3, _label_width(alignment.target_words) + 0.3
    width, height = left + right + 2.2, count * step + 0.5
    figure.set_size_inches(width, height)
    axes = figure.add_axes((left / width, 0.0, 2.2 / width, 1.0))
    axes.set_axis_off()
    axes.set(xlim=(0, 1), ylim=(count - 0.3, -1.4))
    axes.text(-0.03, -0.95, "source", ha="right", va="center", color="#555b66")
    axes.text(1.03, -0.95, "target", ha="left", va="center", color="#555b66")
    for index, word in enumerate(alignment.source_words):
        axes.text(-0.03, index, _short(word), ha="right", va="center", fontsize=9)
    for index, word in enumerate(alignment.target_words):
        axes.text(1.03, index, _short(word), ha="left", va="center", fontsize=9)
    for source, target in alignment.links:
        strength = float(alignment.weights[target, source])
        axes.plot((0, 1), (source, target), color="#1f5fbf", alpha=0.25 + 0.75 * min(1.0, strength), linewidth=1.6)
