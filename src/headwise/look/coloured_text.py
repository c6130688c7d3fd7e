"""A text in colours: how much each of its words raised or lowered the log-odds of a label (gradient × input)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwise.look.capture import Look

LINE, HEIGHT, HEAD = 6.5, 0.3, 0.45  # inches: how long and high a line is, and what stands above the first
FONT = 11.0  # points
_CLOSES, _OPENS = ".,;:!?)]}%'’”", "([{'’“"  # stand close to the word before them, or to that after them


@dataclass(frozen=True)
class ColouredText:
    """A label, its probability, and the words of a text: each with the space before it, and what it contributed."""

    label: str
    chance: float
    words: list[tuple[str, float]]

    @classmethod
    def of(cls, look: Look) -> ColouredText:
        """Sums the saliency of the pieces of each word. What a model adds to a text, begin and end, is left out."""
        assert look.source is not None
        tokens, row = look.source.tokens, look.saliency[0]
        words: list[tuple[str, float]] = []
        for group in look.source.groups:
            if tokens[group[0]].special:
                continue
            text = "".join(tokens[place].text for place in group)
            if not words or text.strip()[:1] in _CLOSES or words[-1][0].strip() in _OPENS:
                text = text.lstrip()
            words.append((text, float(row[list(group)].sum())))
        return cls(look.output.text, float(look.steps.chances[0]), words)

    @property
    def limit(self) -> float:
        """The largest contribution, whatever its sign."""
        return max((abs(value) for _, value in self.words), default=0.0) or 1.0

    def as_dict(self) -> dict[str, Any]:
        words = [[text, round(value, 4)] for text, value in self.words]
        return {"label": self.label, "chance": round(self.chance, 6), "words": words}

    def picture(self, path: str | Path) -> None:
        """Draws the text in lines: blue words raised the log-odds of the label, red ones lowered them."""
        from headwise.look.pictures import draw  # imports torch, which the page does without

        draw(path, [self.label, *(word for word, _ in self.words)], self._fill)

    def _fill(self, figure: Any) -> None:
        from matplotlib import colormaps

        places = self._places(figure)
        tall = HEAD + HEIGHT * (1 + max((line for _, line in places), default=0))
        figure.set_size_inches(LINE, tall)
        figure.text(0, 1, f"{self.label}  {self.chance:.3f}", fontsize=FONT, weight="bold", va="top")
        for (left, line), (text, value) in zip(places, self.words, strict=True):
            share = value / self.limit
            box = {"facecolor": colormaps["RdBu"](0.5 + 0.5 * share), "edgecolor": "none", "pad": 1.0}
            ink = "white" if abs(share) > 0.6 else "#1c2430"
            middle = 1 - (HEAD + (line + 0.5) * HEIGHT) / tall
            figure.text(left / LINE, middle, text.strip(), fontsize=FONT, color=ink, va="center", bbox=box)

    def _places(self, figure: Any) -> list[tuple[float, int]]:
        """Where each word begins: inches from the left, and the number of its line."""
        places: list[tuple[float, int]] = []
        left, line = 0.0, 0
        space = _width(figure, "n n") - _width(figure, "nn")
        for text, _ in self.words:
            width = _width(figure, text.strip()) + 0.03
            before = space if text[:1].isspace() else 0.0
            if left and left + before + width > LINE:
                left, line, before = 0.0, line + 1, 0.0
            places.append((left + before, line))
            left += before + width
        return places


def _width(figure: Any, text: str) -> float:
    """Inches that a text takes."""
    probe = figure.text(0, 0, text, fontsize=FONT)
    width = probe.get_window_extent().width / figure.dpi
    probe.remove()
    return float(width)
