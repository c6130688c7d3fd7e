"""Draws the curves of one or several training runs as PNG or SVG, with matplotlib. Does not import torch."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from headwise.errors import UsageError
from headwise.files import write_whole
from headwise.look import fonts

DOTS = 130  # per inch, in a PNG
COLOURS = ("#1f5fbf", "#d1495b", "#2e8b57", "#b8860b", "#7b4fa6", "#008b8b", "#8c564b", "#5f6b7a")
GREY = "#555b66"
Points = tuple[list[int], list[float]]  # updates, values; NaN leaves a gap
NONE: Points = ([], [])


@dataclass(frozen=True)
class Course:
    """The figures in a run's log, by update."""

    name: str
    training: Points = NONE  # log-loss, nats per token
    validation: Points = NONE
    scores: dict[str, Points] = field(default_factory=dict)  # BLEU, chrF
    rate: Points = NONE
    speed: Points = NONE  # target tokens per second


def curves_picture(courses: Sequence[Course], path: str | Path) -> None:
    """Draws a panel each for loss and perplexity, scores, learning rate and speed, if there is something to show."""
    path = Path(path)
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("png", "svg"):
        raise UsageError(f"{path}: the name of the picture must end in .png or .svg")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    names = [course.name for course in courses]
    families = fonts.families_for(names) if kind == "png" else [*fonts.available_families(names), "sans-serif"]
    settings: dict[Any, Any] = {
        "font.family": families, "font.size": 9.0, "text.parse_math": False, "svg.fonttype": "none",
        "svg.hashsalt": "headwise", "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
        "grid.color": "#e4e7ec", "axes.axisbelow": True, "axes.edgecolor": "#9aa3af", "axes.titlesize": 10.0,
        "axes.titleweight": "bold", "axes.titlelocation": "left", "legend.frameon": False, "legend.fontsize": 8.0,
    }  # fmt: skip
    content = io.BytesIO()
    with rc_context(settings), fonts.quiet():
        figure = Figure(facecolor="white")
        figure.set_layout_engine("constrained", w_pad=0.12, h_pad=0.12)
        _fill(figure, courses)
        metadata = {"Date": None} if kind == "svg" else None  # equal input gives an equal file
        figure.savefig(content, format=kind, dpi=DOTS, metadata=metadata)
    write_whole(path, content.getvalue())


def _fill(figure: Any, courses: Sequence[Course]) -> None:
    panels = [_draw_loss]
    panels += [_draw_scores] if any(course.scores for course in courses) else []
    panels += [_draw_rate] if any(course.rate[0] for course in courses) else []
    panels += [_draw_speed] if any(course.speed[0] for course in courses) else []
    columns = 1 if len(panels) == 1 else 2
    rows = -(-len(panels) // columns)
    figure.set_size_inches(5.8 * columns, 3.4 * rows + 0.2)
    for number, draw in enumerate(panels):
        alone = number == len(panels) - 1 and len(panels) % 2 == 1 and columns == 2
        place = figure.add_gridspec(rows, columns)[number // columns, :] if alone else (rows, columns, number + 1)
        axes = figure.add_subplot(place) if alone else figure.add_subplot(*place)
        draw(axes, courses)
        axes.set_xlabel("update", color=GREY)
        axes.margins(x=0.02)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="best")


def _draw_loss(axes: Any, courses: Sequence[Course]) -> None:
    axes.set_title("Loss")
    axes.set_ylabel("log-loss (nats per token)", color=GREY)
    for course, colour in _coloured(courses):
        _line(axes, course.training, colour, _label(courses, course, "training"), linewidth=1.0, alpha=0.75)
        best = _best(course.validation, np.nanargmin)
        held_out = COLOURS[1] if len(courses) == 1 else colour
        label = _label(courses, course, f"validation, best {best}" if best else "validation")
        _line(axes, course.validation, held_out, label, marker="o", markersize=3.5, linewidth=1.8)
    low, high = axes.get_ylim()
    if high < 30:  # above that, the perplexity is too large to be meaningful
        axes.set_ylim(max(low, 0.0), high)
        _perplexity_scale(axes)


def _perplexity_scale(axes: Any) -> None:
    """Adds a perplexity scale for the same values on the right."""
    low, high = axes.get_ylim()
    beside = axes.twinx()
    beside.set_ylim(low, high)
    beside.grid(False)
    beside.spines["right"].set_visible(True)
    round_numbers = [m * 10.0**e for e in range(14) for m in (1, 2, 5)]
    shown = [value for value in round_numbers if low <= np.log(value) <= high]
    step = -(-len(shown) // 8) if shown else 1
    ticks = shown[::step] if len(shown) > 1 else [np.exp(low), np.exp(high)]
    beside.set_yticks([float(np.log(value)) for value in ticks], [f"{value:,.4g}" for value in ticks])
    beside.set_ylabel("perplexity", color=GREY)


def _draw_scores(axes: Any, courses: Sequence[Course]) -> None:
    names = list(dict.fromkeys(name for course in courses for name in course.scores))
    axes.set_title("Validation " + " and ".join(names))
    axes.set_ylabel("score (0 to 100)", color=GREY)
    for course, colour in _coloured(courses):
        for number, name in enumerate(names):
            points = course.scores.get(name, NONE)
            best = _best(points, np.nanargmax)
            own = COLOURS[number] if len(courses) == 1 else colour
            label = _label(courses, course, f"{name}, best {best}" if best else name)
            _line(axes, points, own, label, marker="o", markersize=3.5, linestyle="-" if number == 0 else "--")
    _from_zero(axes)


def _draw_rate(axes: Any, courses: Sequence[Course]) -> None:
    axes.set_title("Learning rate")
    for course, colour in _coloured(courses):
        _line(axes, course.rate, colour, course.name if len(courses) > 1 else "")
    _from_zero(axes)


def _draw_speed(axes: Any, courses: Sequence[Course]) -> None:
    axes.set_title("Speed")
    axes.set_ylabel("target tokens per second", color=GREY)
    for course, colour in _coloured(courses):
        _line(axes, course.speed, colour, course.name if len(courses) > 1 else "")
    _from_zero(axes)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def _line(axes: Any, points: Points, colour: str, label: str, **style: Any) -> None:
    if points[0]:
        # A single point does not make a line: it needs a marker to be visible.
        marks = {"marker": "o", "markersize": 4} if len(points[0]) == 1 else {}
        axes.plot(*points, color=colour, label=label, **{**marks, **style})


def _from_zero(axes: Any) -> None:
    axes.set_ylim(0, axes.get_ylim()[1] * 1.05 or 1)


def _best(points: Points, choose: Any) -> str:
    if not np.isfinite(points[1]).any():
        return ""
    place = int(choose(points[1]))
    return f"{points[1][place]:.4g} at {points[0][place]:,}"


def _label(courses: Sequence[Course], course: Course, what: str) -> str:
    return what if len(courses) == 1 else f"{course.name}: {what}"


def _coloured(courses: Sequence[Course]) -> list[tuple[Course, str]]:
    return [(course, COLOURS[number % len(COLOURS)]) for number, course in enumerate(courses)]
