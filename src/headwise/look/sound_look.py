"""What a speech model attends to while it writes: cross-attention over the spectrogram, token by token."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from headwise.cancellation import check_cancelled
from headwise.errors import UsageError
from headwise.files import write_whole
from headwise.look.page import fill_page
from headwise.look.panels import Floats
from headwise.look.pictures import sound_picture
from headwise.look.token_labels import Reading
from headwise.models.interface import Network
from headwise.nn import capture_attention
from headwise.text.tokenizer import EOS, Tokenizer

WHAT = ("attention", "cross", "alignment")
POSITIONS_PER_SECOND = 50
MOST_BYTES = 16 << 20  # of the maps of a page
_DARK, _BRIGHT = np.array([250.0, 250.0, 252.0]), np.array([38.0, 60.0, 110.0])  # silence, and the loudest bin


@dataclass(frozen=True)
class SoundLook:
    """The arrays behind the drawings: `attention` is (L, H, T, S), row t belongs to the token written at step t."""

    spectrogram: Floats  # (frames, mels) of the sound, without what it is padded with
    attention: Floats
    labels: Sequence[str]  # of the tokens that were written, the end last
    text: str
    heads: Sequence[tuple[int, int]]  # layers and heads, from 0, whose attention is known to follow the sound

    @property
    def seconds(self) -> float:
        return float(self.attention.shape[-1] / POSITIONS_PER_SECOND)

    def weights(self, layer: int | None = None, head: int | None = None) -> Floats:
        """(T, S) of a layer and head, counted from 1. None: the mean; of all, over the heads that follow the sound."""
        layers, heads = self.attention.shape[:2]
        for kind, wanted, count in (("layer", layer, layers), ("head", head, heads)):
            if wanted is not None and not 1 <= wanted <= count:
                raise UsageError(f"there is no {kind} {wanted}: the decoder has {kind}s 1 to {count}")
        if layer is None and head is None:
            following: Floats = np.stack([self.attention[one] for one in self.heads]).mean(axis=0)
            return following
        chosen = self.attention if layer is None else self.attention[layer - 1 : layer]
        chosen = chosen if head is None else chosen[:, head - 1 : head]
        mean: Floats = chosen.mean(axis=(0, 1))
        return mean

    def alignment(self, layer: int | None = None, head: int | None = None) -> str:
        """When each token was heard: the time that it attended to most."""
        times = self.weights(layer, head).argmax(axis=1) / POSITIONS_PER_SECOND
        return "\n".join(f"{time:.2f}\t{label}" for time, label in zip(times, self.labels, strict=True))

    def save(
        self, path: str | Path, what: str = "attention", layer: int | None = None, head: int | None = None,
        merge_pieces: bool = False,
    ) -> None:  # fmt: skip
        """Writes a picture (.png, .svg), or a page (.html) that shows the text being written, and fetches nothing."""
        if what not in WHAT:
            raise UsageError(f"--what {what} is not for sound; choose one of {', '.join(WHAT)}")
        weights, path = self.weights(layer, head), Path(path)
        if path.suffix.lower() == ".html":
            write_whole(path, self.page(layer, head).encode())
        else:
            title = _title(layer, head)
            sound_picture(self.spectrogram, weights, self.labels, self.seconds, f"{self.text}\n{title}", path)

    def page(self, layer: int | None = None, head: int | None = None) -> str:
        """The HTML of a page with a map for each head, or for each layer where that would be too large."""
        choices = [(layer, head)] if (layer, head) != (None, None) else self._choices()
        data: dict[str, Any] = {
            "seconds": self.seconds,
            "tokens": list(self.labels),
            "positions": self.attention.shape[-1],
            "maps": [self._map(*one) for one in choices],
        }
        picture = base64.b64encode(_png(_coloured(self.spectrogram))).decode()
        values = {"title": html.escape(self.text[:80]), "text": html.escape(self.text), "picture": picture}
        return fill_page("sound", values, json.dumps(data, ensure_ascii=False, separators=(",", ":")))

    def _choices(self) -> list[tuple[int | None, int | None]]:
        layers, heads, tokens, positions = self.attention.shape
        room = MOST_BYTES // max(1, tokens * positions)
        by_layer: list[tuple[int | None, int | None]] = [(one, None) for one in range(1, layers + 1)]
        by_head: list[tuple[int | None, int | None]] = [
            (one, two) for one in range(1, layers + 1) for two in range(1, heads + 1)
        ]
        return [(None, None), *next((some for some in (by_head, by_layer) if len(some) < room), [])]

    def _map(self, layer: int | None, head: int | None) -> dict[str, Any]:
        check_cancelled()
        return {
            "title": _title(layer, head), "layer": layer, "head": head, "rows": _packed(self.weights(layer, head))
        }  # fmt: skip


def look_at_sound(
    network: Network, tokenizer: Tokenizer, features: Floats, frames: int, prompt: Sequence[int], ids: Sequence[int],
    heads: Sequence[tuple[int, int]] = (),
) -> SoundLook:  # fmt: skip
    """Runs one pass over a window; of its `features`, the first `frames` are sound and not padding."""
    device = next(network.parameters()).device
    read = torch.tensor([[*prompt, *ids]], device=device)
    network.eval()
    with torch.no_grad(), capture_attention(network) as seen:
        network(torch.from_numpy(features)[None].to(device), read)
    names = network.attention_names()["cross"]
    positions = max(1, -(-frames // 2))
    stacked = torch.stack([seen[name][0][0] for name in names])  # (L, H, T, S)
    attention = stacked[:, :, len(prompt) - 1 :, :positions].float().cpu().numpy()
    layers, count = attention.shape[:2]
    known = [(layer, head) for layer, head in heads if layer < layers and head < count]
    upper = [(layer, head) for layer in range(layers // 2, layers) for head in range(count)]
    written = Reading.of(tokenizer, [*ids, EOS])
    return SoundLook(features[:frames], attention, written.labels, tokenizer.decode(list(ids)).strip(), known or upper)


def _title(layer: int | None, head: int | None) -> str:
    if layer is None and head is None:
        return "mean of the heads that follow the sound"
    return ", ".join(f"{kind} {n}" for kind, n in (("layer", layer), ("head", head)) if n is not None)


def _packed(weights: Floats) -> str:
    """Each row in 256 steps of its own largest weight."""
    largest = np.maximum(weights.max(axis=1, keepdims=True), 1e-9)
    return base64.b64encode((255 * weights / largest).round().astype(np.uint8).tobytes()).decode()


def _coloured(spectrogram: Floats) -> NDArray[np.uint8]:
    """Time to the right, low frequencies at the bottom."""
    low, high = float(spectrogram.min()), float(spectrogram.max())
    share = ((spectrogram.T[::-1] - low) / max(high - low, 1e-6))[..., None]
    return np.asarray((1 - share) * _DARK + share * _BRIGHT).round().astype(np.uint8)


def _png(pixels: NDArray[np.uint8]) -> bytes:
    from PIL import Image

    stream = BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()
