"""What a network attends to in a picture: each head's map, attention rollout, gradient × input, over the picture."""

from __future__ import annotations

import base64
import html
import json
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from headwise.cancellation import check_cancelled
from headwise.errors import UsageError
from headwise.files import write_whole
from headwise.look import fonts
from headwise.look.page import fill_page
from headwise.look.panels import Floats
from headwise.look.saliency import log_odds
from headwise.models.interface import Network
from headwise.nn import capture_attention

WHAT = ("attention", "encoder", "saliency")
SHOWN_SIDE = 168  # pixels of a picture in a sheet
Row = list[tuple[str, NDArray[np.uint8]]]  # titles and pictures side by side
_RED, _BLUE, _ORANGE = (np.array(rgb, dtype=float) for rgb in ((220, 30, 30), (30, 60, 220), (232, 89, 12)))


@dataclass(frozen=True)
class PictureLook:
    """The arrays behind the drawings. `attention` is (L, H, N, N) over all tokens; [CLS], if there is one, is first."""

    pixels: NDArray[np.uint8]  # (size, size, 1 or 3), as the network read it
    attention: Floats
    grid: tuple[int, int]  # rows and columns of patches
    saliency: Floats  # (size, size): gradient × input of the label's log-odds, summed over the channels
    label: str  # that the saliency is about

    @property
    def maps(self) -> Floats:
        """How much attention each patch gets from [CLS], or on average, by layer and head: (L, H, rows, columns)."""
        return self._over_patches(self.attention)

    @property
    def rollout(self) -> Floats:
        """Attention through all layers, (rows, columns): products of the heads' mean with half of the residual path.

        Abnar and Zuidema 2020 (arXiv 2005.00928), section 3.
        """
        tokens = self.attention.shape[-1]
        flow = np.eye(tokens, dtype=np.float32)
        for weights in self.attention.mean(axis=1):  # (N, N) of each layer, first layer first
            flow = (0.5 * weights + 0.5 * np.eye(tokens, dtype=np.float32)) @ flow
        return self._over_patches(flow)

    def _over_patches(self, weights: Floats) -> Floats:
        patches = self.grid[0] * self.grid[1]
        leading = weights.shape[-1] - patches
        rows = weights[..., 0, leading:] if leading else weights.mean(axis=-2)
        return rows.reshape(*rows.shape[:-1], *self.grid)

    def alignment(self, layer: int | None = None, head: int | None = None) -> str:
        raise UsageError(f"a picture has no alignment; choose --what {', '.join(WHAT)}")

    def drawings(self, what: str = "attention", layer: int | None = None, head: int | None = None) -> list[Row]:
        """Returns rows of titles and pictures (size, size, 3): the picture itself with what sums it up; each layer."""
        if what not in WHAT:
            raise UsageError(f"--what {what} is not for pictures; choose one of {', '.join(WHAT)}")
        base = np.broadcast_to(self.pixels, (*self.pixels.shape[:2], 3))
        rows: list[Row] = [[(self.label, np.array(base))]]
        if what == "attention" and layer is None and head is None:
            rows[0].append(("attention rollout", overlay(base, self.rollout)))
        if what != "encoder" and layer is None and head is None:
            rows[0].append(("gradient × input", overlay(base, self.saliency, signed=True)))
        if what != "saliency":
            layers, heads = self.attention.shape[:2]
            for one in _numbers("layer", layer, layers):
                shown = _numbers("head", head, heads)
                rows.append([(f"layer {one}, head {n}", overlay(base, self.maps[one - 1, n - 1])) for n in shown])
        return rows

    def save(
        self, path: str | Path, what: str = "attention", layer: int | None = None, head: int | None = None,
        merge_pieces: bool = False,
    ) -> None:  # fmt: skip
        """Writes a .png, or a page (.html) that holds its pictures and fetches nothing."""
        path, drawn = Path(path), self.drawings(what, layer, head)
        if path.suffix.lower() == ".html":
            write_whole(path, self.page(what, layer, head).encode())
        elif path.suffix.lower() == ".png":
            write_whole(path, _packed(_sheet(drawn)))
        else:
            raise UsageError(f"{path}: pictures are written as .png or .html; change the name of the output")

    def page(self, what: str = "attention", layer: int | None = None, head: int | None = None) -> str:
        """The HTML of a page that shows one map at a time, large, and all of them small."""
        maps: list[dict[str, Any]] = []
        if what == "attention" and layer is None and head is None:
            maps.append({"kind": "rollout", **_map(self.rollout)})
        if what != "encoder" and layer is None and head is None:
            maps.append({"kind": "saliency", **_map(self.saliency, signed=True)})
        if what != "saliency":
            layers, heads = self.attention.shape[:2]
            for one in _numbers("layer", layer, layers):
                check_cancelled()
                maps += [
                    {"kind": "head", "layer": one, "head": n, **_map(self.maps[one - 1, n - 1])}
                    for n in _numbers("head", head, heads)
                ]
        values = {"title": html.escape(self.label), "picture": _in_base64(self.pixels)}
        return fill_page("picture", values, json.dumps({"maps": maps}, separators=(",", ":")))

    def explained(self) -> dict[str, Any]:
        """What moved the label, for JSON: the picture as PNG, and gradient × input in 255 steps, 128 being zero."""
        return {"label": self.label, "picture": _in_base64(self.pixels), "map": _map(self.saliency, signed=True)}


def look_at_picture(
    network: Network, pixels: NDArray[np.uint8], inputs: Tensor, answer: int, label: str
) -> PictureLook:
    """`inputs` (1, C, size, size) are the normalised numbers of `pixels`; `answer` is the class that is asked about."""
    names = network.attention_names()["encoder"]
    grid: tuple[int, int] = network.grid(inputs)  # type: ignore[operator]
    with torch.no_grad(), capture_attention(network) as seen:
        network.hidden(inputs)  # type: ignore[operator]
    attention = torch.stack([seen[name][0][0] for name in names]).float().cpu().numpy()  # (L, H, N, N)
    check_cancelled()
    asked = inputs.detach().clone().requires_grad_(True)
    with torch.enable_grad():
        logits = network(asked)  # (1, classes)
        (gradient,) = torch.autograd.grad(log_odds(logits, torch.tensor([answer]))[0], asked)
    saliency = (gradient * asked).detach().sum(dim=1)[0].float().cpu().numpy()  # (size, size)
    return PictureLook(pixels, attention, grid, saliency, label)


def overlay(base: NDArray[np.uint8], values: Floats, signed: bool = False) -> NDArray[np.uint8]:
    """Colours over a picture: the largest value is red; with `signed`, what is above zero is blue, the rest orange."""
    height, width = base.shape[:2]
    large = np.asarray(Image.fromarray(values.astype(np.float32)).resize((width, height), Image.Resampling.BILINEAR))
    least = 0.0 if signed else float(large.min())
    span = float(np.abs(large - least).max()) or 1.0
    share = ((large - least) / span)[..., None]  # -1 … 1, or 0 … 1
    colour = np.where(share >= 0, _BLUE, _ORANGE) if signed else _RED
    opacity = 0.75 * np.abs(share)
    return np.asarray((1 - opacity) * base + opacity * colour).round().astype(np.uint8)


def _map(values: Floats, signed: bool = False) -> dict[str, Any]:
    """One byte per value: 0 to 255 from the smallest to the largest; `signed`: 128 is zero, 1 and 255 the extremes."""
    least = 0.0 if signed else float(values.min())
    share = (values - least) / (float(np.abs(values - least).max()) or 1.0)
    steps = (128 + 127 * share if signed else 255 * share).round().astype(np.uint8)
    packed = base64.b64encode(steps.tobytes()).decode()
    return {"rows": values.shape[0], "columns": values.shape[1], "signed": signed, "values": packed}


def _in_base64(pixels: NDArray[np.uint8]) -> str:
    return base64.b64encode(_packed(Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels))).decode()


def _numbers(kind: str, wanted: int | None, count: int) -> range:
    if wanted is None:
        return range(1, count + 1)
    if not 1 <= wanted <= count:
        raise UsageError(f"there is no {kind} {wanted}: the network has {kind}s 1 to {count}")
    return range(wanted, wanted + 1)


def _enlarged(pixels: NDArray[np.uint8]) -> Image.Image:
    times = max(1, SHOWN_SIDE // max(pixels.shape[:2]))
    image = Image.fromarray(pixels)
    return image.resize((image.width * times, image.height * times), Image.Resampling.NEAREST)


def _packed(image: Image.Image) -> bytes:
    stream = BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


def _sheet(drawn: list[Row]) -> Image.Image:
    """All drawings, each with its title above."""
    wide, high = _enlarged(drawn[0][0][1]).size
    margin, line = 8, 16
    columns = max(map(len, drawn))
    sheet = Image.new(
        "RGB", (columns * (wide + margin) + margin, len(drawn) * (high + margin + line) + margin), "white"
    )
    pen = ImageDraw.Draw(sheet)
    for down, row in enumerate(drawn):
        for across, (title, pixels) in enumerate(row):
            left, top = margin + across * (wide + margin), margin + down * (high + margin + line)
            pen.text((left, top), _cut(title, wide), fill="black", font=_font(title))
            sheet.paste(_enlarged(pixels), (left, top + line))
    return sheet


def _font(text: str) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(fonts.file_for(text), 12)


def _cut(title: str, wide: int) -> str:
    """As much of a title as fits above its picture."""
    font = _font(title)
    while font.getlength(title) > wide:
        title = title[:-2].rstrip() + "…" if len(title) > 2 else ""
    return title
