"""Runs a model once and records its attention: the arrays, and everything that can be drawn from them."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from headwise.cancellation import check_cancelled
from headwise.errors import UsageError
from headwise.files import write_whole
from headwise.look.alignment import Alignment, align
from headwise.look.panels import Booleans, Floats, Panel
from headwise.look.saliency import gradient_times_input
from headwise.look.token_labels import Reading, read_tokens
from headwise.models.interface import Network
from headwise.nn import capture_attention
from headwise.nn.observer import Captured
from headwise.text.tokenizer import BOS, EOS, Tokenizer, TokenizerPair

if TYPE_CHECKING:
    from collections.abc import Iterator

WHAT = (
    "attention",
    "encoder",
    "decoder",
    "cross",
    "causal",
    "bias",
    "alignment",
    "positions",
    "mask",
    "pattern",
    "saliency",
)
CANDIDATES = 5
TITLES = {
    "encoder": "Encoder self-attention",
    "decoder": "Decoder self-attention",
    "cross": "Cross-attention",
    "causal": "Causal self-attention",
}


@dataclass(frozen=True)
class Steps:
    """The model's predictions at each step: the probability of the token that was written, and the most likely ones."""

    chances: Floats  # (T,)
    candidates: Sequence[Sequence[tuple[str, float]]]


@dataclass(frozen=True, repr=False, eq=False)
class Look:
    """What a model attended to in one text. The arrays are in `attention`, by kind:

    encoder (L, H, S, S), decoder (L, H, T, T) and cross (L, H, T, S) of a translation; causal (L, H, T, T) of a
    language model. Row t of decoder, cross and causal is the step that reads `target` token t and writes `output`
    token t.
    """

    source: Reading | None  # None for a language model
    target: Reading  # what the decoder read at each step: ⟨start⟩, then the previous token
    output: Reading  # what it wrote at each step, ⟨end⟩ last
    attention: dict[str, Floats]
    positions: Floats | None  # the vectors added to the input, (S, D); None if the model adds none
    steps: Steps
    find_saliency: Callable[[], Floats]
    # What is added to the scores by position, by kind of attention, (L, H, T, S); the same in every layer of a stack.
    biases: dict[str, Floats] = field(default_factory=dict)
    # Which entries of the attention may be other than 0, by kind, (L, H, T, S).
    allowed: dict[str, Booleans] = field(default_factory=dict)
    labels: bool = False  # whether the one output is a label, and saliency says which words moved it

    def __repr__(self) -> str:
        shapes = ", ".join(f"{kind} {weights.shape}" for kind, weights in self.attention.items())
        return f"<Look at {len(self.output.tokens)} steps: {shapes}>"

    @cached_property
    def saliency(self) -> Floats:
        """Gradient × input, (T, S) for a translation, (T, T) for a language model; computed on first access."""
        return self.find_saliency()

    def explained(self) -> dict[str, Any]:
        """What moved the label, for JSON: the words of the text with their saliency."""
        from headwise.look.coloured_text import ColouredText

        return ColouredText.of(self).as_dict()

    def alignment(self, layer: int | None = None, head: int | None = None) -> Alignment:
        """Links words by cross-attention: by default the mean over the heads of the second-to-last decoder layer.

        That layer usually aligns best (Garg et al. 2019, arXiv 1909.02074). `layer` and `head`, counted from 1, choose
        another.
        """
        if self.source is None:
            raise UsageError("a language model has no alignment: it has no source; choose another --what")
        if "cross" not in self.attention:
            raise UsageError("this model has no attention from target to source, so it has no alignment")
        return align(self._attention_panel("cross", merge_pieces=True).chosen(layer or max(1, self._layers - 1), head))

    @property
    def _layers(self) -> int:
        return len(self.attention["cross"])

    def panels(self, what: str = "attention", *, merge_pieces: bool = False) -> list[Panel]:
        """Returns the panels to draw for one of WHAT."""
        if what not in WHAT:
            raise UsageError(f"unknown picture '{what}'; choose one of {', '.join(WHAT)}")
        if not self.attention and what not in ("positions", "saliency"):
            raise UsageError("this model has no attention to look at; try --what saliency")
        if what == "attention":
            shown = [(self._attention_panel(kind, merge_pieces), kind) for kind in self.attention]
            # Numbers on scores cannot be summed over the pieces of a word, as weights can.
            biased = () if merge_pieces else self.biases
            return [
                p for panel, kind in shown for p in ([panel, self._bias_panel(kind)] if kind in biased else [panel])
            ]
        if what == "bias":
            if not self.biases:
                raise UsageError("this model adds no bias to its attention scores; choose another --what")
            return [self._bias_panel(kind) for kind in self.biases]
        if what in TITLES:
            if what not in self.attention:
                raise UsageError(f"this model has no {TITLES[what].lower()}; it has {', '.join(self.attention)}")
            return [self._attention_panel(what, merge_pieces)]
        if what == "alignment":
            return [self.alignment().panel()]
        if what == "mask":
            return [self._mask_panel(kind) for kind in self.attention]
        if what == "pattern":
            return [self._allowed_panel(kind, "pattern", self.allowed[kind]) for kind in self.attention]
        return [self._positions_panel()] if what == "positions" else [self._saliency_panel(merge_pieces)]

    def save(
        self,
        path: str | Path,
        what: str = "attention",
        layer: int | None = None,
        head: int | None = None,
        merge_pieces: bool = False,
    ) -> None:
        """Writes a file in the format of its suffix: .html (an interactive page), .svg or .png.

        `layer` and `head` count from 1; without them a picture shows all of them, and a page lets the reader choose.
        """
        path = Path(path)
        if path.suffix.lower() not in (".html", ".svg", ".png"):
            raise UsageError(f"{path}: the name of the output must end in .html, .svg or .png")
        if what == "alignment":
            alignment = self.alignment(layer, head)
            panels, layer, head = [alignment.panel()], None, None
        else:
            alignment, panels = None, self.panels(what, merge_pieces=merge_pieces)
        if path.suffix.lower() == ".html":
            from headwise.look.page import page

            chosen = [panel.chosen(layer, head) for panel in panels]  # raises an error for a wrong number
            first = (chosen[0].first_layer, chosen[0].first_head)
            write_whole(path, page(self, panels, what, *first, note=str(alignment or "")).encode())
            return
        from headwise.look import pictures

        if alignment is not None:
            pictures.links_picture(alignment, path)
        elif what == "saliency" and self.labels:
            from headwise.look.coloured_text import ColouredText

            ColouredText.of(self).picture(path)
        else:
            pictures.panels_picture([panel.chosen(layer, head) for panel in panels], path)

    def _repr_html_(self) -> str:
        """Shows the page in a frame of a notebook."""
        from headwise.look.page import page

        content = html.escape(page(self, self.panels(), "attention", 1, 1), quote=True)
        return (
            f'<iframe srcdoc="{content}" sandbox="allow-scripts" title="Attention" '
            'style="width: 100%; height: 720px; border: 0"></iframe>'
        )

    # ---- panels

    def _attention_panel(self, kind: str, merge_pieces: bool) -> Panel:
        # Rows of self-attention are labelled with the token that was read, of cross-attention with the token written.
        rows, columns = {
            "encoder": (self.source, self.source),
            "cross": (self.output, self.source),
        }.get(kind, (self.target, self.target))
        assert rows is not None
        assert columns is not None
        row_title = "written" if kind == "cross" else "from"
        column_title = "source" if kind == "cross" else "to"
        return _panel(kind, TITLES[kind], self.attention[kind], rows, columns, row_title, column_title, merge_pieces)

    def _bias_panel(self, kind: str) -> Panel:
        panel = self._attention_panel(kind, merge_pieces=False)
        title = panel.title.replace("self-attention", "position bias")
        return replace(panel, name=f"{kind}-bias", title=title, values=self.biases[kind], scale="signed")

    def _mask_panel(self, kind: str) -> Panel:
        """What may attend: one matrix, unless layers or heads differ."""
        allowed = self.allowed[kind]
        alike = bool((allowed == allowed[:1, :1]).all())
        return self._allowed_panel(kind, "may attend", allowed[:1, :1] if alike else allowed)

    def _allowed_panel(self, kind: str, title: str, allowed: Booleans) -> Panel:
        panel = self._attention_panel(kind, merge_pieces=False)
        values = allowed.astype(np.float32)
        return replace(panel, title=f"{panel.title}: {title}", values=values, scale="mask")

    def _positions_panel(self) -> Panel:
        if self.positions is None:
            raise UsageError(
                "this model adds no position vectors to its input: its positions are rotary, distances between tokens, "
                "or none; choose another --what"
            )
        length, model_dim = self.positions.shape
        numbers = [str(position) for position in range(length)]
        dimensions = [str(dimension) for dimension in range(model_dim)]
        values = self.positions[None, None]
        return Panel("positions", "Positions", values, numbers, dimensions, "position", "dimension", "signed")

    def _saliency_panel(self, merge_pieces: bool) -> Panel:
        columns = self.target if self.source is None else self.source
        values = self.saliency[None, None]
        return _panel("saliency", "Saliency", values, self.output, columns, "written", "input", merge_pieces, "signed")


def _panel(
    name: str,
    title: str,
    values: Floats,
    rows: Reading,
    columns: Reading,
    row_title: str,
    column_title: str,
    merge_pieces: bool,
    scale: Literal["weights", "signed"] = "weights",
) -> Panel:
    panel = Panel(name, title, values, rows.labels, columns.labels, row_title, column_title, scale)
    return panel.merged(rows.groups, rows.words, columns.groups, columns.words) if merge_pieces else panel


def look_at_translation(
    model: Network, tokenizers: TokenizerPair, source_ids: Sequence[int], target_ids: Sequence[int]
) -> Look:
    """Runs one masked pass over a pair, given without begin and end of sentence; it computes what decoding computes."""
    read, written = [BOS, *target_ids], [*target_ids, EOS]
    device = next(model.parameters()).device
    source = torch.tensor([[*source_ids, EOS]], device=device)
    target = torch.tensor([read], device=device)
    found = _pass(model, lambda: model(source, target)[0], written)  # logits (T, V)
    return Look(
        Reading.of(tokenizers.source, [*source_ids, EOS]),
        Reading.of(tokenizers.target, read),
        Reading.of(tokenizers.target, written),
        found.attention,
        _added_positions(model, source.size(1)),
        _steps(found.logits, written, tokenizers.target),
        found.find_saliency,
        _position_biases(model, found.attention),
        found.allowed,
    )


def look_at_text(model: Network, tokenizer: Tokenizer, ids: Sequence[int]) -> Look:
    """Runs one causal pass of a language model over the ids; the last output is its most likely next token."""
    if not ids:
        raise UsageError("there is nothing to look at: the text is empty")
    text = torch.tensor([list(ids)], device=next(model.parameters()).device)
    found = _pass(model, lambda: model(text)[0], ids[1:])  # logits (T, V)
    written = [*ids[1:], int(found.logits[-1].argmax())]
    return Look(
        None,
        Reading.of(tokenizer, ids),
        Reading.of(tokenizer, written),
        found.attention,
        _added_positions(model, len(ids)),
        _steps(found.logits, written, tokenizer),
        found.find_saliency,
        _position_biases(model, found.attention),
        found.allowed,
    )


@dataclass(frozen=True)
class _Pass:
    """The results of one pass."""

    logits: Tensor
    attention: dict[str, Floats]
    allowed: dict[str, Booleans]
    find_saliency: Callable[[], Floats]


def _pass(model: Network, run: Callable[[], Tensor], written: Sequence[int]) -> _Pass:
    """Runs the model and captures its attention. After the end of `written`, the most likely token is assumed."""
    with _still(model), torch.no_grad(), capture_attention(model) as captured:
        logits = run()  # (T, V)
    goal = torch.tensor([*written, *logits[len(written) :].argmax(dim=-1).tolist()], device=logits.device)

    def find_saliency() -> Floats:
        entrance = model.entrance()
        if entrance is None:
            raise UsageError("saliency is not available: this family does not define where its embeddings enter")
        with _still(model):
            return gradient_times_input(entrance, run, goal)

    return _Pass(logits, *attention_by_kind(model, captured), find_saliency)


@contextmanager
def _still(model: nn.Module) -> Iterator[None]:
    """Switches dropout off within the block and restores the mode afterwards."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


def attention_by_kind(model: Network, captured: Captured) -> tuple[dict[str, Floats], dict[str, Booleans]]:
    """The weights of every layer and head by kind of attention, and what may attend: (L, H, T, S) each."""

    def stacked(calls: dict[str, list[Tensor]], names: Sequence[str]) -> Tensor:
        return torch.stack([calls[name][0][0] for name in names]).cpu()  # (L, H, T, S)

    kinds = model.attention_names().items()
    weights = {kind: stacked(captured, names).float().numpy() for kind, names in kinds}
    return weights, {kind: stacked(captured.allowed, names).numpy() for kind, names in kinds}


def _steps(logits: Tensor, written: Sequence[int], tokenizer: Tokenizer) -> Steps:
    chances = logits.float().softmax(dim=-1).cpu()  # (T, V)
    best = chances.topk(min(CANDIDATES, chances.size(-1)), dim=-1)
    rows = []
    for values, ids in zip(best.values.tolist(), best.indices.tolist(), strict=True):
        check_cancelled()
        labels = [
            read_tokens(tokenizer, [number])[0].label for number in ids
        ]  # one by one, so that bytes are not merged
        rows.append(list(zip(labels, values, strict=True)))
    return Steps(chances.gather(1, torch.tensor(written)[:, None])[:, 0].numpy(), rows)


@torch.no_grad()
def _added_positions(model: Network, length: int) -> Floats | None:
    """Returns the position vectors, by running the module that adds them on zeros; None if it adds nothing."""
    positions, example = model.entrance(), next(model.parameters())
    if positions is None:
        return None
    zeros = torch.zeros(1, length, int(model.architecture["model_dim"]), device=example.device)
    added: Floats = positions(zeros)[0].float().cpu().numpy()
    return added if added.any() else None


@torch.no_grad()
def _position_biases(model: Network, attention: dict[str, Floats]) -> dict[str, Floats]:
    """Returns what each stack adds to its scores, 0 where a mask hides the entry anyway."""
    biases: dict[str, Floats] = {}
    for kind, bias in model.position_biases().items():
        weights = attention[kind]
        values: Floats = bias(*weights.shape[-2:]).float().cpu().numpy()  # (1, H, T, S)
        biases[kind] = np.broadcast_to(np.tril(values) if kind in ("decoder", "causal") else values, weights.shape)
    return biases
