"""Writes docs/path.md: one sentence from text to text, with the real ids, shapes and numbers of every stage.

    python docs/make_path.py            trains a small model for a few seconds and writes the page
    python docs/make_path.py --check    compares the page with what would be written, and exits 1 if it is outdated

Rounding differs between machines, so numbers with a decimal point, and blocks marked `varies`, are not compared.
"""

from __future__ import annotations

import math
import random
import re
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from headwise.bundle.directory import open_bundle
from headwise.bundle.weights import load_model, save_model
from headwise.config import schema
from headwise.data.batch import Batch
from headwise.data.pairs import pair_batch
from headwise.decoding.beam import Beams, Candidates, beam_search, select
from headwise.decoding.options import SearchOptions
from headwise.decoding.source_batches import Sources
from headwise.decoding.token_filters import TokenFilters
from headwise.losses import batch_loss, label_smoothed_cross_entropy
from headwise.models.transformer import Transformer
from headwise.nn import (
    EncoderLayer,
    MultiHeadAttention,
    capture_attention,
    causal_mask,
    padding_mask,
    scaled_dot_product_attention,
)
from headwise.text.phrasebook import Phrasebook, PhrasePair
from headwise.text.tokenizer import BOS, EOS, Tokenizer, TokenizerPair
from headwise.training.optimizers import build_optimizer
from headwise.training.schedules import linear
from headwise.training.step import Updater

PAGE = Path(__file__).with_name("path.md")
HERO = "Mary sends letters every day."
COMPANIONS = ("You usually write novels.", "My knife is under the piano.")
PAIRS, MOST_WORDS = 30_000, 6  # of the phrasebook, of which the short sentences are learned
UPDATES, SENTENCES, RATE, SMOOTHING, BEAM = 160, 48, 6e-3, 0.05, 4
SIZES = {"model_dim": 64, "num_heads": 4, "encoder_layers": 1, "decoder_layers": 1, "ff_dim": 128, "dropout": 0.0}


class Page:
    """Markdown, line by line."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, *paragraphs: str) -> None:
        for paragraph in paragraphs:
            self.lines += [textwrap.fill(paragraph, 120, break_on_hyphens=False, break_long_words=False), ""]

    def table(self, head: Sequence[object], rows: Iterable[Sequence[object]]) -> None:
        for row in (head, ["---"] * len(head), *rows):
            self.lines.append("| " + " | ".join(str(cell) for cell in row) + " |")
        self.lines.append("")

    def block(self, lines: Iterable[str], *, varies: bool = False) -> None:
        self.lines += ["```text varies" if varies else "```text", *lines, "```", ""]

    def __str__(self) -> str:
        return "\n".join(self.lines).rstrip() + "\n"


def comparable(page: str) -> str:
    """What must be the same wherever the page is written: text, ids and shapes."""
    page = re.sub(r"```text varies\n.*?```", "(varies)", page, flags=re.DOTALL).replace("**", "")
    page = re.sub(r"-?\d+\.\d+", "0.0", page)
    return "\n".join(" ".join(paragraph.split()) for paragraph in page.split("\n\n"))  # lines may break elsewhere


def shape(tensor: Tensor) -> str:
    return "(" + ", ".join(map(str, tensor.shape)) + ")"


def decimals(values: Tensor) -> list[str]:
    return [f"{value:.3f}" for value in values.tolist()]


def shares(row: Tensor) -> list[str]:
    """A row of weights, the largest in bold."""
    return [f"**{weight:.2f}**" if weight == row.max() else f"{weight:.2f}" for weight in row]


class Example:
    """A small model that has just been trained, the sentence that it never saw, and two others in one batch."""

    def __init__(self) -> None:
        torch.set_num_threads(1)  # sums in the same order on every machine
        book = Phrasebook(seed=1)
        self.training = [pair for pair in book.pairs(PAIRS) if len(pair.english.split()) <= MOST_WORDS]
        held_out = {pair.english: pair for pair in book.pairs(1000, held_out=True)}
        self.pairs = [held_out[english] for english in (HERO, *COMPANIONS)]
        assert not any(re.search(r"\bsen[dt].* letter", pair.english) for pair in self.training)
        lines = [line for pair in self.training for line in pair]
        self.tokenizer = Tokenizer.train(lines, schema.Tokenizer(kind="bpe", size=900))
        torch.manual_seed(1)
        self.model = Transformer(source_vocab=self.tokenizer.size, **SIZES)  # type: ignore[arg-type]
        self.batch = self.batch_of(self.pairs)
        self.losses = self._train()
        self.model.eval()
        self.source_ids, self.target_ids, self.lengths = self.batch.inputs
        length = int((self.batch.targets[0] != self.batch.ignore).sum())
        self.source = self._labels(self.source_ids[0, : int(self.lengths[0])])
        self.read = self._labels(self.target_ids[0, :length])
        self.written = self._labels(self.batch.targets[0, :length])

    def batch_of(self, pairs: Sequence[PhrasePair]) -> Batch:
        encode = self.tokenizer.encode_ragged
        return pair_batch(encode([pair.english for pair in pairs]), encode([pair.chinese for pair in pairs]))

    def _train(self) -> list[float]:
        settings = schema.Training(learning_rate=RATE)
        optimizer = build_optimizer(settings, self.model.parameters())
        update, choose = Updater(self.model, optimizer, smoothing=SMOOTHING), random.Random(1)
        losses = []
        for step in range(1, UPDATES + 1):
            batch = self.batch_of(choose.sample(self.training, SENTENCES))
            losses.append(update(batch, linear(step, RATE, UPDATES // 8, UPDATES)).log_loss)
        return losses

    def _labels(self, ids: Tensor) -> list[str]:
        return [f"`{piece}`" for piece in self.tokenizer.pieces(ids.tolist())]


def make_page() -> str:
    """The whole page; the model that it is about is trained first."""
    example, page = Example(), Page()
    page.say(
        "# One sentence, all the way",
        "<!-- Written by docs/make_path.py: change that, not this. -->",
        "`text → data → model → loss → checkpoint → decoding → text`: what happens to one sentence, with its real ids, "
        "shapes and numbers. [make_path.py](make_path.py) wrote this page: it trains a small model for some seconds, with "
        "a fixed seed, and records every stage. Each heading names the code.",
        "Axis letters, as everywhere: B batch, S source, T target, H heads, K head size, D model width, F feed-forward "
        "width, V vocabulary.",
    )
    with torch.no_grad():
        for stage in (_text, _tokens, _batch, _embedding, _encoder, _decoder, _logits, _loss, _checkpoint, _search):
            stage(example, page)
    return str(page)


def _text(example: Example, page: Page) -> None:
    pair = example.pairs[0]
    page.say(
        "## 1. Text (`text/phrasebook.py`)",
        f"> {pair.english} → {pair.chinese}",
        f"The model was trained on {len(example.training):,} short sentence pairs of the generated phrasebook. This pair "
        "was not among them: *send letters* occurs in no training sentence, though both words do. The Chinese side "
        "puts *every day* (每天) before the verb.",
    )


def _tokens(example: Example, page: Page) -> None:
    tokenizer = example.tokenizer
    page.say(
        "## 2. Tokens (`text/tokenizer.py`)",
        f"Both languages share one vocabulary of {tokenizer.size} tokens. Ids 0 to 3 are padding, unknown, begin and "
        "end of sentence; 4 to 259 are the 256 bytes; the rest was learned by byte-pair encoding. `▁` stands for a "
        "space.",
    )
    for name, labels, ids in (
        ("English", example.source, example.source_ids[0]),
        ("Chinese", example.written, example.batch.targets[0]),
    ):
        page.table([name, *labels], [["id", *ids[: len(labels)].tolist()]])
    face = tokenizer.encode("🙂")
    page.say(
        "A character without a token becomes its bytes, so that any text can be restored: 🙂 is "
        + " ".join(f"`{piece}`" for piece in tokenizer.pieces(face))
        + f", ids {', '.join(map(str, face))}."
    )


def _batch(example: Example, page: Page) -> None:
    batch = example.batch
    page.say(
        "## 3. A batch (`data/batch.py`, `data/pairs.py`)",
        "Three sentences, so that there is some padding (0) to see. The `inputs` of the network are the source, what the "
        "decoder reads, which begins with 2 (begin of sentence), and the lengths of the sources. It must predict the "
        "`targets`: the same tokens shifted by one, ending with 3.",
    )
    tensors = {"inputs[0]": example.source_ids, "inputs[1]": example.target_ids, "targets": batch.targets}
    letters = {"inputs[0]": "(B, S)"}
    page.block(
        line
        for name, tensor in tensors.items()
        for line in (
            f"{name} {letters.get(name, '(B, T)')} = {shape(tensor)}",
            *(f"  {' '.join(f'{number:>4}' for number in row)}" for row in tensor.tolist()),
        )
    )
    allowed = padding_mask(example.lengths, example.source_ids.size(1))
    page.say(
        f"The sources have {example.lengths.tolist()} tokens, the targets "
        f"{(batch.targets != batch.ignore).sum(dim=1).tolist()}: {batch.tokens} real target "
        f"tokens, by which the loss will be divided. The padding mask {shape(allowed)} is True at "
        f"{int(allowed.sum())} of {allowed.numel()} source positions. (A training batch consists of sentences of "
        "similar length, so that there is little padding.)"
    )


def _embedding(example: Example, page: Page) -> None:
    model, ids = example.model, example.source_ids
    table, place, token = model.source_embedding, 1, int(ids[0, 1])
    embedded = table(ids)
    summed = model.source_positions(embedded)
    positions = model.source_positions(torch.zeros_like(embedded))[0]
    width = table.weight.size(1)
    page.say(
        "## 4. Embeddings and positions (`nn/embedding.py`, `nn/positions.py`)",
        f"Each id selects a row of one matrix (V, D) = {shape(table.weight)}, which is also the output projection. The "
        f"row is multiplied by √{width} = {int(table.scale)}, and the position's sines and cosines are added: "
        f"(B, S) → (B, S, D) = {shape(summed)}. The first four of the {width} numbers of {example.source[place]} (id {token}) at position {place}:",
    )
    page.table(
        ["", "0", "1", "2", "3"],
        [
            [name, *decimals(row[:4])]
            for name, row in (
                (f"row {token} of the matrix", table.weight[token]),
                (f"times {int(table.scale)}", embedded[0, place]),
                (f"position {place}: sin 1, cos 1, …", positions[place]),
                ("sum: what the encoder reads", summed[0, place]),
            )
        ],
    )


def _encoder(example: Example, page: Page) -> None:
    model, ids, shown = example.model, example.source_ids, len(example.source) + 1  # one column of padding is enough
    layer = model.encoder.layers[0]
    assert isinstance(layer, EncoderLayer)
    attention = layer.self_attention
    assert isinstance(attention, MultiHeadAttention)
    x = model.source_positions(model.source_embedding(ids))
    q, k, v = attention.project(x, x, x)
    allowed = padding_mask(example.lengths, ids.size(1))[:, None, None, :]
    output, weights = scaled_dot_product_attention(q, k, v, allowed)
    with capture_attention(model) as captured:
        memory = model.encode(ids, example.lengths)
    assert torch.allclose(captured["encoder.layers.0.self_attention"][0], weights, atol=1e-6)
    joined = output.transpose(1, 2).flatten(2)
    hidden = layer.feed_forward.inner(layer.self_residual.norm(x + attention.output(joined)))
    scores = q[0, 0, 1] @ k[0, 0, :shown].T
    head, scale = ["", *example.source, "padding"], int(math.sqrt(q.size(-1)))
    page.say(
        "## 5. The encoder (`nn/attention.py`, `nn/multi_head.py`, `nn/layers.py`)",
        f"One matmul computes queries, keys and values of all heads, (B, H, S, K) = {shape(q)} each. Attention is "
        f"softmax(Q Kᵀ / √K) V, and the mask hides the padding from the softmax. Head 1, the query of "
        f"{example.source[1]}:",
    )
    page.table(
        head,
        [
            ["q·k", *decimals(scores)],
            [f"over √{q.size(-1)} = {scale}", *decimals(scores / scale)],
            ["softmax", *decimals(weights[0, 0, 1, :shown])],
        ],
    )
    page.say(
        f"All weights are (B, H, S, S) = {shape(weights)}: every row sums to 1, and columns of padding are exactly 0. "
        "Each head has its own weights; the same query in all four:"
    )
    page.table(head, [[f"head {i + 1}", *shares(row[1, :shown])] for i, row in enumerate(weights[0])])
    page.say(
        f"The heads' outputs {shape(output)} are joined to (B, S, D) = {shape(joined)} and projected. "
        "LayerNorm(x + sublayer(x)) follows, then the feed-forward network: "
        f"(B, S, F) = {shape(hidden)} and back. Its ReLU leaves {(hidden[0] > 0).float().mean():.2f} of this "
        f"sentence's inner activations above zero. After one more LayerNorm the encoder's output ('memory'), "
        f"{shape(memory.states)}, is complete; it is computed once, however long the translation becomes."
    )


def _decoder(example: Example, page: Page) -> None:
    model, batch = example.model, example.batch
    with capture_attention(model) as captured:
        model(*batch.inputs)
    own, cross = (captured[f"decoder.layers.0.{kind}_attention"][0] for kind in ("self", "cross"))
    length = len(example.read)
    page.say(
        "## 6. The decoder (`nn/layers.py`, `nn/masks.py`)",
        "In training the whole target is read in one pass; the causal mask hides later positions from each "
        f"position. (T, T) = ({length}, {length}), ■ = may attend:",
    )
    page.block(" ".join("■" if seen else "·" for seen in row) for row in causal_mask(length).tolist())
    page.say(
        f"Self-attention weights are (B, H, T, T) = {shape(own)}. In cross-attention the queries come from the "
        f"decoder, keys and values from the encoder's memory: (B, H, T, S) = {shape(cross)}. The mean of the heads; "
        "each row is the token that is being *written*:"
    )
    mean = cross[0].mean(dim=0)[:, : len(example.source)]
    page.table(["writes", *example.source], [[name, *shares(mean[row])] for row, name in enumerate(example.written)])


def _logits(example: Example, page: Page) -> None:
    batch = example.batch
    logits = example.model(*batch.inputs)
    targets = batch.targets[0, : len(example.written)]
    probabilities = logits[0].softmax(dim=-1)[torch.arange(len(targets)), targets]
    page.say(
        "## 7. Logits (`models/transformer.py`)",
        f"The decoder's states (B, T, D) times the embedding matrix give logits (B, T, V) = {shape(logits)}; softmax "
        "turns them into probabilities. The probability of the correct token at each position of our sentence:",
    )
    page.table(
        ["has read", "must predict", "probability", "−ln p"],
        [
            [f"… {read}" if place else read, said, f"{p:.3f}", f"{-math.log(p):.3f}"]
            for place, (read, said, p) in enumerate(
                zip(example.read, example.written, probabilities.tolist(), strict=True)
            )
        ],
    )


def _loss(example: Example, page: Page) -> None:
    model, batch = example.model, example.batch
    sums = batch_loss(model, batch, SMOOTHING)
    plain, count = label_smoothed_cross_entropy(model(*batch.inputs), batch.targets, SMOOTHING)
    assert torch.allclose(sums.total, plain, rtol=1e-4)
    assert sums.count == int(count)
    mean = float(sums.log_loss) / sums.count
    page.say(
        "## 8. The loss (`losses.py`)",
        f"A sum and a count: {sums.log_loss:.3f} over the {sums.count} real tokens of the batch, {mean:.3f} per token, "
        f"perplexity {math.exp(mean):.2f}. With label smoothing {SMOOTHING} the sum is {sums.total:.3f}, of which the "
        "gradient is taken. Training computes it from the states, chunk by chunk, without ever holding all logits; the "
        "plain formula on the logits above gives the same.",
        f"A uniform guess among {example.tokenizer.size} tokens costs ln {example.tokenizer.size} = "
        f"{math.log(example.tokenizer.size):.3f} per token. The loss during training:",
    )
    shown = [1, *range(UPDATES // 4, UPDATES + 1, UPDATES // 4)]
    page.table(["update", *shown], [["log-loss", *(f"{example.losses[step - 1]:.3f}" for step in shown)]])


def _checkpoint(example: Example, page: Page) -> None:
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder, "model")
        tokenizers = TokenizerPair.one(example.tokenizer)
        save_model(directory, example.model, tokenizers, family="transformer", languages=("en", "zh"))
        files = sorted(path.name for path in directory.iterdir())
        again = load_model(open_bundle(directory))
    assert torch.equal(again(*example.batch.inputs), example.model(*example.batch.inputs))
    count = sum(parameter.numel() for parameter in example.model.parameters())
    page.say(
        "## 9. On disk (`bundle/`)",
        f"The model directory holds {', '.join(f'`{name}`' for name in files)}: {count:,} parameters, the tokenizer, and "
        "the SHA-256 of every file; no file can run code. Loaded again, the model gives the same logits bit for "
        "bit. A checkpoint is such a directory together with the training state.",
    )


def _search(example: Example, page: Page) -> None:
    tokenizer, model = example.tokenizer, example.model
    seen: list[list[str]] = []

    def watched(log_probs: Tensor, beams: Beams, filters: TokenFilters) -> Candidates:
        seen.append(
            [f"{score:8.3f}  {tokenizer.decode(row) or '(nothing yet)'}"
             for score, row in zip(beams.scores.ravel(), beams.tokens.tolist(), strict=True) if score > -math.inf]
        )  # fmt: skip
        return select(log_probs, beams, filters)

    ids = tokenizer.encode(HERO)
    options = SearchOptions(beam=BEAM, n_best=BEAM)
    found = beam_search(model, Sources.of([0], [ids], None, options), options, BEAM, watched)[0]
    state = model.start((torch.tensor([[*ids, EOS]]),), BEAM)
    logits = model.output.logits(model.advance(state, torch.full((BEAM,), BOS)))
    page.say(
        "## 10. Beam search (`decoding/beam.py`)",
        f"Now the model translates by itself, with {BEAM} hypotheses. The source is encoded once; its keys and "
        f"values in the decoder's layer, (1, H, S, K) = {shape(state.cross[0][0])} each, are shared by all {BEAM}. A "
        "step feeds the newest token of each hypothesis, adds its keys and values to a cache, and gives logits "
        f"{shape(logits)}. The hypotheses before each step, with the sum of their log-probabilities:",
    )
    page.block(
        (line for step, rows in enumerate(seen) for line in (f"step {step + 1}", *(f"  {row}" for row in rows))),
        varies=True,
    )
    page.say(
        "The finished ones are ranked by that sum, end of sentence included, over the length penalty "
        f"((5 + length) / 6)^{options.length_penalty}:"
    )
    page.block((f"{one.score:8.3f}  {tokenizer.decode(one.tokens)}" for one in found), varies=True)
    page.say(
        "## 11. Text",
        f"> {HERO} → {example.pairs[0].chinese}",
        "is the reference; the first line above is the model's translation. `headwise demo` trains a larger model in "
        "the same way, on more of the same phrasebook.",
    )


def main(arguments: Sequence[str]) -> int:
    made = make_page()
    if arguments == ["--check"]:
        return 0 if PAGE.is_file() and comparable(PAGE.read_text(encoding="utf-8")) == comparable(made) else 1
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
