"""Writes docs/costs.md: what training costs, computed from formulas.

    python docs/make_costs.py            writes the page
    python docs/make_costs.py --check    compares the page with what would be written, and exits 1 if it is old

tests/meta/test_costs.py compares every formula below with the parameters, operations, memory and traffic of a small model.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).with_name("costs.md")
BYTES = 4  # of an fp32 number: weights, gradients and moments are fp32; bf16 is for the matmuls alone


@dataclass(frozen=True)
class Shape:
    """A Transformer: sizes, and how long its sequences are on average."""

    name: str
    width: int  # D
    inner: int  # of the feed-forward
    encoders: int  # layers; those of a language model are encoders with a causal mask
    decoders: int
    vocabulary: int
    length: int  # tokens of a sequence, ends included; both sides alike

    # ---- weights

    @property
    def attention(self) -> int:
        """Four D × D matrices and their biases."""
        return 4 * self.width * self.width + 4 * self.width

    @property
    def feed_forward(self) -> int:
        return 2 * self.width * self.inner + self.inner + self.width

    @property
    def encoder(self) -> int:
        return self.encoders * (self.attention + self.feed_forward + 2 * 2 * self.width)

    @property
    def decoder(self) -> int:
        return self.decoders * (2 * self.attention + self.feed_forward + 3 * 2 * self.width)

    @property
    def table(self) -> int:
        """One matrix for both embeddings and the output."""
        return self.vocabulary * self.width

    @property
    def parameters(self) -> int:
        return self.encoder + self.decoder + self.table

    # ---- operations of a training step

    @property
    def matrices(self) -> int:
        """Numbers of the weight matrices that a target token and its source token are multiplied with."""
        square, slab = self.width * self.width, 2 * self.width * self.inner
        return self.encoders * (4 * square + slab) + self.decoders * (8 * square + slab) + self.table

    @property
    def flops(self) -> int:
        """A target token (and its source token): forward 2 a number, backward twice that; queries · keys and weights ·
        values of every attention, 2 · 2 · length · D, as many times.
        """
        attentions = self.encoders + 2 * self.decoders
        return 3 * (2 * self.matrices + 4 * attentions * self.length * self.width)

    # ---- memory and network of a rank

    def memory(self, stage: int, ranks: int) -> float:
        """Bytes of weights, gradients and Adam's two moments. A ZeRO stage shards moments (1), gradients (2), all (3)."""
        weights, gradients, moments = (BYTES * self.parameters * times for times in (1, 1, 2))
        shared = [moments / (ranks if stage >= 1 else 1), gradients / (ranks if stage >= 2 else 1)]
        return sum(shared) + weights / (ranks if stage >= 3 else 1)

    def sent(self, sharded: bool, ranks: int, rounds: int = 1) -> float:
        """Bytes sent per rank and update.

        Replicas: a ring all-reduce of the gradients, once. Shards, in each of `rounds` micro-batches: gradients are
        reduced to their owners, layers gathered for the forward and again for the backward pass, the table once.
        """
        share = BYTES * (ranks - 1) / ranks
        if not sharded:
            return 2 * share * self.parameters
        return rounds * share * (3 * self.parameters - self.table)


@dataclass(frozen=True)
class Run:
    shape: Shape
    updates: int
    batch: int  # target tokens per update

    @property
    def tokens(self) -> int:
        return self.updates * self.batch

    @property
    def operations(self) -> float:
        return float(self.tokens) * self.shape.flops


BASE = Shape("base", 512, 2048, 6, 6, 37_000, 30)
BIG = Shape("big", 1024, 4096, 6, 6, 37_000, 30)
BILLION = Shape("1 B language model", 2048, 8192, 19, 0, 32_000, 2048)
RUNS = (Run(BASE, 100_000, 25_000), Run(BIG, 300_000, 25_000), Run(BILLION, 40_000, 500_000))
RANKS = (1, 8, 64)


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)


def gigabytes(value: float) -> str:
    return f"{value / 1e9:.3g} GB"


def make_page() -> str:
    shapes = [run.shape for run in RUNS]
    weights = table(
        ["", *(s.name for s in shapes)],
        [
            ["D, inner, layers", *(f"{s.width}, {s.inner}, {s.encoders} + {s.decoders}" for s in shapes)],
            ["vocabulary V", *(f"{s.vocabulary:,}" for s in shapes)],
            ["encoder (or all layers)", *(f"{s.encoder / 1e6:,.1f} M" for s in shapes)],
            ["decoder", *(f"{s.decoder / 1e6:,.1f} M" for s in shapes)],
            ["table, V · D, tied", *(f"{s.table / 1e6:,.1f} M" for s in shapes)],
            ["parameters N", *(f"**{s.parameters / 1e6:,.1f} M**" for s in shapes)],
        ],
    )
    work = table(
        ["", *(s.name for s in shapes)],
        [
            ["target tokens per update", *(f"{r.batch:,}" for r in RUNS)],
            ["updates", *(f"{r.updates:,}" for r in RUNS)],
            ["target tokens", *(f"{r.tokens / 1e9:.3g} billion" for r in RUNS)],
            ["operations per target token", *(f"{r.shape.flops / 1e6:,.0f} MFLOP" for r in RUNS)],
            ["… of which attention itself", *(f"{1 - 6 * r.shape.matrices / r.shape.flops:.1%}" for r in RUNS)],
            ["operations of the run", *(f"**{r.operations:.2g}**" for r in RUNS)],
            ["hours at 10 TFLOP/s", *(f"{r.operations / 1e13 / 3600:,.0f}" for r in RUNS)],
            ["hours at 1,000 TFLOP/s", *(f"{r.operations / 1e15 / 3600:,.1f}" for r in RUNS)],
        ],
    )
    stages = {0: "replicas (DDP)", 1: "ZeRO 1: moments sharded", 2: "ZeRO 2: gradients too", 3: "shards (FSDP2, ZeRO 3)"}
    memory = "\n\n".join(
        f"**{s.name}**\n\n"
        + table(
            ["bytes per rank", *(f"{ranks} ranks" if ranks > 1 else "1 rank" for ranks in RANKS)],
            [[name, *(gigabytes(s.memory(stage, ranks)) for ranks in RANKS)] for stage, name in stages.items()],
        )
        for s in shapes
    )
    network = table(
        ["bytes sent per rank and update", *(s.name for s in shapes)],
        [
            [f"{'shards' if sharded else 'replicas'}, {ranks} ranks", *(gigabytes(s.sent(sharded, ranks)) for s in shapes)]
            for sharded in (False, True)
            for ranks in RANKS[1:]
        ],
    )  # fmt: skip
    return PAGE_TEXT.format(weights=weights, work=work, memory=memory, network=network)


PAGE_TEXT = """\
# What training costs, on paper

The paper's two models on WMT14 English-German (4.5 million pairs, 37,000 shared tokens, batches of about 25,000 source
and 25,000 target tokens, 100,000 and 300,000 updates), and a language model of a billion parameters trained on twenty tokens per
parameter. `docs/make_costs.py` computes this page from the formulas; a test compares each formula with the parameters, operations, memory
and traffic of a small model.

## Weights

An attention block has 4 D² + 4 D parameters, a feed-forward network 2 D · inner + inner + D, a layer norm 2 D. An encoder layer is one
attention, one feed-forward network and two norms; a decoder layer has one more attention block and one more norm. The embeddings
and the output share one table of V · D. (A final norm and learned positions, where a model has them, are extra.)

{weights}

The paper says 65 M and 213 M.

## Work

An element of a weight matrix costs 2 operations per token in the forward pass and twice that in the backward
pass: 6 per token. Attention itself adds 2 · 2 · length · D operations per token and attention block in the forward pass. Sentences are assumed to
be 30 tokens long on both sides, the language model's blocks 2,048; a causal mask saves nothing here, because the masked half
is computed and discarded. Padding (4 % with length buckets), validation and decoding are extra.

{work}

The paper gives 3.3 · 10¹⁸ and 2.3 · 10¹⁹, computed as hours × sustained GPU speed (9.5 TFLOP/s): by this count a
third of it was useful work. One core of the machine in [the log](log/README.md) does 0.085 TFLOP/s: `base` as in the paper would take it
months, hence the small recipes. "10 TFLOP/s" is what an older desktop GPU sustains, "1,000"
eight to sixteen data-centre GPUs at 30 to 40 % of their bf16 peak.

## Memory

Weights, gradients and Adam's two moments are fp32, 16 bytes per parameter, also where matmuls are done in bf16. Headwise offers
the first and the last row; the two between are shown for comparison.

{memory}

In addition, every rank needs memory for activations, which grow with `training.batch_tokens` / ranks / `training.accumulate`; with
shards also for the full layer in use (a layer of the language model: 0.2 GB) and the full table (0.26 GB); rank 0 needs,
with shards, one copy of all weights in main memory for validation and saving.

## Network

Replicas add up gradients in a ring: each rank sends 2 · (R - 1)/R · 4 N bytes once per update, however many
micro-batches `training.accumulate` makes. Shards send 3 · (R - 1)/R · 4 N, less one transfer of the table, for every micro-batch: with
shards, accumulate only when memory requires it. Both overlap with the backward pass.

{network}

At 25 GB/s (a fast network between machines) the replicas of `big` need 0.06 s; eight GPUs that sustain 40 TFLOP/s each
compute for 0.1 s, which hides the transfer. At 0.125 GB/s (gigabit Ethernet) it takes 12 s and cannot be hidden: there a larger batch, or one
machine, is better. Apart from that, five messages of a few numbers are sent per update.
"""


def main() -> int:
    made = make_page()
    if "--check" in sys.argv:
        return int(PAGE.read_text(encoding="utf-8") != made)
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
