"""The interactive page: one HTML file that holds its data, styles and script, and fetches nothing from the network.

Weights are stored as integer multiples of 1/10,000, rounded down: 2 bytes each before compression, and rounding a
stored weight to three decimals gives the same as rounding the exact one. Layers are separate blocks, unpacked when they
are first shown.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import zlib
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from headwise.cancellation import check_cancelled
from headwise.look.coloured_text import ColouredText
from headwise.look.panels import Floats, Panel

if TYPE_CHECKING:
    from headwise.look.capture import Look

STEPS_OF_ONE = 10_000
# The files in web/ that make up the style sheet and the script of each kind of page.
STYLES = {name: ("colours.css", f"{name}.css") for name in ("page", "picture", "sound")}
SCRIPTS = {
    "page": ("data.js", "words.js", "heatmap.js", "coloured.js", "page.js"),
    "picture": ("words.js", "picture.js"),
    "sound": ("words.js", "sound.js"),
}
HEADINGS = {
    "bias": "Position bias",
    "alignment": "Alignment",
    "positions": "Positions",
    "mask": "Masks",
    "pattern": "Patterns",
    "saliency": "Saliency",
}
# What rows and columns are, for a reader who sees the page for the first time.
EXPLAINED = {
    "mask": "A filled cell means that the row may attend to the column.",
    "pattern": "A filled cell means that the row may attend to the column in this layer and head.",
    "encoder": "Each row is a source token and shows how it distributes its attention over the whole source.",
    "decoder": "Each row is a target token that the decoder has read; it may attend to itself and to earlier tokens.",
    "cross": "Each row is a target token as it is written and shows which source tokens the decoder attended to.",
    "causal": "Each row is a token that the model has read; it may attend to itself and to earlier tokens.",
    "encoder-bias": "What is added to the scores of each row by the distance of the column, in every layer.",
    "decoder-bias": "What is added to the scores of each row by the distance of the column, in every layer.",
    "alignment": "Links each target word to the source word that it attended to most; the end of sentence is ignored.",
    "positions": "The vectors that are added to the embeddings: one row per position, one column per dimension.",
    "saliency": "Gradient × input: how much each input token raised (or, below zero, lowered) the log-odds of "
    "the token that was written.",
}


def page(look: Look, panels: list[Panel], what: str, layer: int = 1, head: int = 1, note: str = "") -> str:
    """Returns the HTML. `layer` and `head`, counted from 1, are shown first; `note` is a line of text to copy."""
    blocks: dict[str, str] = {}
    described = []
    for panel in panels:
        for number in range(len(panel.values)):
            check_cancelled()
            blocks[f"{panel.name}-{number}"] = _block(panel, number)
        described.append(_describe(panel, what))
    data = {
        "panels": described,
        "steps": _steps(look, panels) if what == "attention" else None,
        "layer": layer - 1,
        "head": head - 1,
        "note": note,
        "coloured": ColouredText.of(look).as_dict() if look.labels and what in ("attention", "saliency") else None,
    }
    source = "" if look.source is None else look.source.text
    return _fill(HEADINGS.get(what, "Attention"), source, look.target.text, data, blocks)


def _fill(heading: str, source: str, target: str, data: dict[str, Any], blocks: dict[str, str]) -> str:
    style, script = _style("page"), _script("page")
    title = f"{heading}: {source or target}"
    values = {
        # Only this script and this style sheet may run, and nothing may be fetched, whatever the tokens contain.
        "policy": f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'",
        "title": html.escape(title if len(title) <= 80 else title[:79] + "…"),
        "heading": html.escape(heading),
        "source": html.escape(source),
        "target": html.escape(target),
        "style": style,
        "script": script,
        # Without "<" the data cannot close the script element.
        "data": json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"),
        "blocks": "\n".join(f'<script type="text/plain" id="{key}">{text}</script>' for key, text in blocks.items()),
    }
    return _filled("page.html", values)


def fill_page(name: str, values: dict[str, str], data: str) -> str:
    """A page of another kind, web/NAME.html: `values` are HTML, `data` is JSON for the script."""
    style, script = _style(name), _script(name)
    policy = f"default-src 'none'; img-src data:; script-src {_hash(script)}; style-src {_hash(style)}; base-uri 'none'"
    data = data.replace("<", "\\u003c")  # without "<" the data cannot close the script element
    return _filled(f"{name}.html", {**values, "policy": policy, "style": style, "script": script, "data": data})


def _filled(name: str, values: dict[str, str]) -> str:
    filled = []
    for part in _part(name).split("{{"):
        key, closed, rest = part.partition("}}")
        filled.append(values[key] + rest if closed else part)
    return "".join(filled)


def allowed_hashes() -> tuple[str, str]:
    """Returns the hashes of the scripts and of the style sheets of all pages, which a site that embeds them allows."""
    return " ".join(_hash(_script(name)) for name in SCRIPTS), " ".join(_hash(_style(name)) for name in STYLES)


def _style(name: str) -> str:
    return "\n".join(map(_part, STYLES[name]))


def _script(name: str) -> str:
    return "\n".join(map(_part, SCRIPTS[name]))


def _part(name: str) -> str:
    return resources.files("headwise.look").joinpath("web", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _describe(panel: Panel, what: str) -> dict[str, Any]:
    layers, heads = panel.values.shape[:2]
    explained = EXPLAINED.get(what if what in ("mask", "pattern") else panel.name, "")
    return {
        "name": panel.name,
        "title": panel.title,
        "explained": explained,
        "rowTitle": panel.row_title,
        "columnTitle": panel.column_title,
        "rows": list(panel.rows),
        "columns": list(panel.columns),
        "layers": layers,
        "heads": [f"{head + 1}" for head in range(heads)] + (["mean of all"] if heads > 1 else []),
        "scale": panel.scale,
    }


def _block(panel: Panel, layer: int) -> str:
    """Packs a layer's matrices, the mean over heads last."""
    values = panel.values[layer]  # (H, T, S)
    if len(values) > 1:
        values = np.concatenate([values, values.mean(axis=0, keepdims=True)])
    return _as_floats(values) if panel.scale == "signed" else _as_steps(values)


def _as_steps(values: Floats) -> str:
    """Packs multiples of 1/10,000 with all high bytes before all low ones: most high bytes are 0 and compress well."""
    steps = np.floor(values.astype(np.float64) * STEPS_OF_ONE).clip(0, STEPS_OF_ONE).astype("<u2")
    planes = steps.reshape(-1, 1).view(np.uint8).T[::-1]  # (2, values)
    return _packed(planes.tobytes())


def _as_floats(values: Floats) -> str:
    return _packed(values.astype("<f4").tobytes())


def _packed(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 6)).decode()


def _steps(look: Look, panels: list[Panel]) -> dict[str, Any] | None:
    """Returns what was read and written at each step; None if pieces are merged, since steps are tokens, not words."""
    if len(panels[-1].rows) != len(look.target.tokens):
        return None
    steps = look.steps
    return {
        "read": look.target.labels,
        "written": look.output.labels,
        "chances": [round(float(chance), 6) for chance in steps.chances],
        "candidates": [[[label, round(chance, 6)] for label, chance in row] for row in steps.candidates],
        "self": next((kind for kind in ("decoder", "causal") if kind in look.attention), None),
        "cross": "cross" if "cross" in look.attention else None,
        "source": [] if look.source is None else look.source.labels,
    }
