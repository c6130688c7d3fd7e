"""A memory of earlier segments: kept in training, validation and evaluation, in shares, over ranks and after a kill."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
import torch
from fixtures_ranks import succeed, training
from safetensors.torch import load_file

import headwise as hw
from headwise.config.recipe import load_recipe
from headwise.config.schema import Training
from headwise.data.blocks import StreamBatches
from headwise.data.cursor import Cursor, walk
from headwise.data.store import Store
from headwise.evaluation.language_model import score_lines, text_perplexity
from headwise.losses import batch_loss
from headwise.text.tokenizer import EOS, TokenizerPair
from headwise.training.loop import Hook, Trainer
from headwise.training.optimizers import build_optimizer
from headwise.training.step import Updater
from headwise.workflows.load import load
from headwise.workflows.train import train

WORDS = ["the", "a", "dog", "cat", "bird", "sees", "likes", "finds", "and", "or", "not", "red", "blue", "one", "two"]


def texts(lines: int, seed: int) -> str:
    choose = random.Random(seed)
    return "".join(" ".join(choose.choices(WORDS, k=choose.randint(2, 9))) + "\n" for _ in range(lines))


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    (tmp_path / "train.txt").write_text(texts(150, 1), encoding="utf-8")
    (tmp_path / "val.txt").write_text(texts(20, 2), encoding="utf-8")
    values: dict[str, Any] = {
        "data": {"text": "train.txt", "validation": {"text": "val.txt"}},
        "tokenizer": {"kind": "word", "size": 60},
        "model": {
            "family": "xl", "model_dim": 16, "num_heads": 2, "layers": 2, "ff_dim": 16, "segment": 8, "memory": 12,
            "dropout": 0.1,
        },
        "training": {
            "steps": 24, "batch_tokens": 48, "optimizer": "adam", "schedule": "constant", "learning_rate": 0.002,
            "warmup": 2, "label_smoothing": 0.0, "validate_every": 8, "save_every": 5, "log_every": 4, "ema": 0.9,
            "threads": 1, "keep": 20,
        },
    }  # fmt: skip
    path = tmp_path / "recipe.toml"
    path.write_text(tomli_w.dumps(values), encoding="utf-8")
    return path


class StopAt(Hook):
    def __init__(self, step: int) -> None:
        self.at = step

    def after_update(self, trainer: Trainer, update: object, batch: object) -> None:
        if trainer.step == self.at:
            trainer.stop = "SIGTERM"


def files(output: Path) -> dict[str, bytes]:
    last = output / "checkpoints/step-00000024"
    wanted = (last / "training.safetensors", output / "model/model.safetensors", output / "log.jsonl")
    return {path.name: path.read_bytes() for path in wanted}


def run(recipe: Path, output: str, *settings: str, hooks: tuple[Hook, ...] = ()) -> Path:
    loaded, base = load_recipe(recipe, list(settings))
    train(loaded, base, recipe.with_name(output), hooks=hooks)
    return recipe.with_name(output)


def test_a_run_that_was_stopped_has_its_memory_again_and_ends_bit_identical(recipe: Path) -> None:
    alone = run(recipe, "alone")
    stored = load_file(alone / "checkpoints/step-00000010/training.safetensors")
    assert stored["carry:0"].shape == stored["carry:1"].shape == (6, 12, 16)
    run(recipe, "stopped", hooks=(StopAt(7),))
    run(recipe, "stopped", hooks=(StopAt(13),))
    assert files(run(recipe, "stopped")) == files(alone)


def test_without_its_memory_it_would_not(recipe: Path) -> None:
    """The checkpoint's memory is what makes it so: with another one, the run goes on differently."""
    from headwise.training import carry

    alone = run(recipe, "alone")
    run(recipe, "stopped", hooks=(StopAt(7),))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(carry.Carry, "restore", lambda self, *arguments: self.forget())
        resumed = run(recipe, "stopped")
    assert files(resumed)["training.safetensors"] != files(alone)["training.safetensors"]


def stored(recipe: Path, name: str, step: int = 10) -> dict[str, torch.Tensor]:
    return load_file(recipe.with_name(name) / f"checkpoints/step-{step:08d}/training.safetensors")


# Adam would make full steps of rounding errors: the slowest sinusoids hardly differ between distances.
TEN = ("model.dropout=0.0", "training.optimizer=momentum", "training.steps=10")


def test_two_ranks_remember_what_one_process_remembers(recipe: Path) -> None:
    succeed(training(recipe, "one", 1, *TEN), training(recipe, "two", 2, *TEN))
    one, two = stored(recipe, "one"), stored(recipe, "two")
    assert one["carry:1"].shape == (6, 12, 16)
    assert one.keys() == two.keys()
    for name in (name for name in one if not name.startswith("optimizer:")):
        torch.testing.assert_close(one[name], two[name], atol=1e-5, rtol=1e-4, msg=lambda text, name=name: name + text)


@pytest.mark.slow
@pytest.mark.parametrize("shard", ["false", "true"])
def test_ranks_go_on_with_their_memory_bit_by_bit(recipe: Path, shard: str) -> None:
    settings, more = (*TEN, f"training.shard={shard}"), "training.steps=12"
    succeed(
        training(recipe, "three", 3, *settings), training(recipe, "three", 3, *settings, more),
        training(recipe, "alone", 3, *settings, more),
    )  # fmt: skip
    one, other = stored(recipe, "three", 12), stored(recipe, "alone", 12)
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def stream(recipe: Path) -> tuple[StreamBatches, TokenizerPair]:
    output = run(recipe, "short", "training.steps=1")
    folder = next(path for path in output.glob("cache/training-*") if path.is_dir())
    return StreamBatches(Store(folder), 48, 8), TokenizerPair.load(output / "model")


@pytest.mark.parametrize(("accumulate", "workers"), [(3, 1), (1, 2)])
def test_updates_in_shares_carry_what_updates_in_one_carry(recipe: Path, accumulate: int, workers: int) -> None:
    batches, tokenizers = stream(recipe)
    found = []
    for options in ({}, {"accumulate": accumulate, "workers": workers}):
        torch.manual_seed(0)
        model = hw.TransformerXL(
            vocab=tokenizers.target.size, model_dim=16, num_heads=2, layers=2, ff_dim=16, segment=8, memory=12,
            dropout=0.0,
        )  # fmt: skip
        settings = Training(optimizer="sgd", learning_rate=0.1)
        updater = Updater(model, build_optimizer(settings, model.parameters()), **options)  # type: ignore[arg-type]
        losses = [updater(batch, 0.1, step).loss for step, (batch, _) in enumerate(walk(batches, epochs=1))]
        found.append((losses, updater.carry.tensors))
    assert found[0][0] == pytest.approx(found[1][0], abs=1e-5)
    for one, other in zip(found[0][1], found[1][1], strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_evaluation_reads_a_text_as_one_pass_with_the_memorys_reach_does(recipe: Path) -> None:
    model = load(run(recipe, "trained") / "model")
    network, tokenizer = model.model, model.tokenizer  # type: ignore[union-attr]
    lines = texts(12, 3).splitlines()
    found = text_perplexity(network, tokenizer, lines)
    assert "|context:20|stride:8|" in found.signature
    ids = torch.tensor([EOS, *(token for line in lines for token in [*tokenizer.encode(line), EOS])])[None]
    place = torch.arange(ids.size(1) - 1)
    reached = place[None, :] >= (place // 8 * 8 - 12)[:, None]
    with torch.no_grad():
        states = network.stack(network.embedding(ids[:, :-1]), reached, causal=True, positions=network.distances)
        log_probs = network.output.logits(states).log_softmax(-1).gather(-1, ids[:, 1:, None])
    assert found.nats == pytest.approx(-float(log_probs.sum()), rel=1e-5)
    alone = [-text_perplexity(network, tokenizer, [line]).nats for line in lines[:3]]
    assert score_lines(network, tokenizer.encode_batch(lines[:3])) == pytest.approx(alone, rel=1e-5)


def test_validation_keeps_the_memory_within_each_stream(recipe: Path) -> None:
    batches, _ = stream(recipe)
    model = load(recipe.with_name("short") / "model").model.eval()  # type: ignore[union-attr]
    carry: tuple[torch.Tensor, ...] = ()
    with torch.no_grad():
        for number in range(3):
            batch = batches.make(Cursor(0, number))
            sums = batch_loss(model, batch.with_inputs(carry))
            carry = sums.carry
        forgetful = batch_loss(model, batch)
    assert float(sums.log_loss) != pytest.approx(float(forgetful.log_loss), rel=1e-5)


def test_a_trained_model_generates_evaluates_and_is_looked_at(recipe: Path, tmp_path: Path) -> None:
    output = run(recipe, "trained", "training.steps=4")
    model = load(output / "model")
    (one,) = model.generate("the dog", max_tokens=30, temperature=0.0)  # type: ignore[union-attr]
    (again,) = model.generate("the dog", max_tokens=30, temperature=0.0)  # type: ignore[union-attr]
    assert one == again
    assert len(one.ids) == 30
    look = model.look("the dog sees one cat")  # type: ignore[union-attr]
    assert look.attention["causal"].shape[:2] == (2, 2)
    look.save(tmp_path / "look.html")
    assert (tmp_path / "look.html").stat().st_size > 1000


def test_a_look_shows_what_generation_computes_beyond_segment_and_memory(recipe: Path) -> None:
    model = load(run(recipe, "trained", "training.steps=4") / "model")
    network, tokenizer = model.model, model.tokenizer  # type: ignore[union-attr]
    text = " ".join(random.Random(5).choices(WORDS, k=45))
    look = model.look(text)  # type: ignore[union-attr]
    place = np.arange(46)
    seen = (place <= place[:, None]) & (place >= (place // 8 * 8 - 12)[:, None])
    for what in ("pattern", "mask"):
        (panel,) = look.panels(what)
        assert (panel.values == seen).all()
    assert not look.saliency[~(seen.astype(int) @ seen > 0)].any()  # through two layers
    ids = torch.tensor([[EOS, *tokenizer.encode(text)]])
    for step, (chance, candidates) in enumerate(zip(look.steps.chances, look.steps.candidates, strict=True), start=1):
        with torch.no_grad():
            expected = network.output.logits(network.advance(network.start(), ids[:, :step]))[0].softmax(-1)
        assert [value for _, value in candidates] == pytest.approx(expected.topk(5).values.tolist(), abs=1e-6)
        assert chance == pytest.approx(float(expected[ids[0, step]] if step < 46 else expected.max()), abs=1e-6)
    (written,) = model.generate(text, max_tokens=1, temperature=0.0)  # type: ignore[union-attr]
    assert look.output.labels[-1] == written.text.strip()
