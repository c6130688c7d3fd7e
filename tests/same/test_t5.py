"""T5 decodes with the same searches as the Transformer: cached = uncached, beam = exhaustive, both engines alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from fixtures_decoding import Uncached, exhaustive, random_sources
from fixtures_models import english_sentences, teach, word_tokenizers
from safetensors.torch import load_file
from small_recipe import write_small_recipe
from torch.testing import assert_close

import headwise
from headwise.bundle.directory import open_bundle
from headwise.bundle.weights import save_model
from headwise.config.recipe import load_recipe
from headwise.decoding.beam import beam_search
from headwise.decoding.fast_step import FastStepper, fast_stepper
from headwise.decoding.options import Request, RequiredPhrase, Sampling, SearchOptions
from headwise.decoding.source_batches import Sources
from headwise.decoding.token_loop import greedy_search
from headwise.decoding.torch_engine import TorchEngine
from headwise.errors import RecipeError
from headwise.models.t5 import T5
from headwise.text.tokenizer import EOS
from headwise.workflows.train import train

VERSIONS: dict[str, dict[str, Any]] = {
    "1.0": {},
    "1.1": {"gated": True, "activation": "gelu-tanh", "tie": "none"},
    "few buckets": {"buckets": 8, "max_distance": 12, "head_dim": 10},
}


def random_t5(seed: int, vocab: int = 60, **changes: Any) -> T5:
    """Its biases and logits are spread, so that positions matter and rounding does not decide between two tokens."""
    sizes = {"model_dim": 32, "num_heads": 4, "head_dim": 8, "encoder_layers": 1, "decoder_layers": 2, "ff_dim": 48}
    torch.manual_seed(seed)
    model = T5(vocab=vocab, **{**sizes, **changes}).eval()
    with torch.no_grad():
        for bias in (model.encoder_bias, model.decoder_bias):
            bias.weight.normal_()
        for norm in (module for name, module in model.named_modules() if name.endswith("norm")):
            norm.weight.mul_(1 + 0.3 * torch.randn_like(norm.weight))  # type: ignore[union-attr, operator, arg-type]
        model.output.weight.mul_(2.0)
        model.output.weight[EOS].mul_(1.5)
    return model


@pytest.mark.parametrize("version", VERSIONS)
@torch.inference_mode()
def test_fast_step_gives_the_logits_of_the_models_own_step_and_of_the_whole_pass(version: str) -> None:
    model = random_t5(1, **VERSIONS[version])
    steppers = model, fast_stepper(model), Uncached(model)
    assert isinstance(steppers[1], FastStepper)
    torch.manual_seed(2)
    ids, lengths = torch.randint(4, 60, (3, 7)), torch.tensor([7, 4, 6])
    states = [stepper.start((ids, lengths), 2) for stepper in steppers]
    rows, moves = 3, {0: [0, 0, 1, 1, 2, 2], 3: [1, 0, 3, 3, 5, 4], 30: [3, 2, 4, 5]}
    for step in range(80):  # more than the cache and the bias hold at first
        tokens = torch.randint(4, 60, (rows,))
        own, fast, whole = (
            stepper.output.logits(stepper.advance(state, tokens))
            for stepper, state in zip(steppers, states, strict=True)
        )
        assert_close(fast, own, atol=5e-5, rtol=1e-4)
        assert_close(own, whole, atol=5e-5, rtol=1e-4)
        if step in moves:
            indices = torch.tensor(moves[step])
            rows = indices.numel()
            for state in states:
                state.reorder(indices)


@pytest.mark.parametrize("version", VERSIONS)
@torch.inference_mode()
def test_cached_search_finds_what_uncached_search_finds(version: str) -> None:
    model = random_t5(3, **VERSIONS[version])
    options = SearchOptions(beam=4, n_best=4, max_extra=5)
    sources = Sources.of(range(30), random_sources(30, seed=4), None, options)
    searched = Uncached(model), fast_stepper(model)
    slow, fast = (beam_search(each, sources, options) for each in searched)
    assert [[h.tokens for h in found] for found in fast] == [[h.tokens for h in found] for found in slow]
    assert [h.score for found in fast for h in found] == pytest.approx(
        [h.score for found in slow for h in found], abs=1e-4
    )
    slow_greedy, fast_greedy = (greedy_search(each, sources, options) for each in searched)
    assert [h.tokens for h in slow_greedy] == [h.tokens for h in fast_greedy]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_beam_that_is_wide_enough_is_exhaustive_search(version: str) -> None:
    vocab, options = 8, SearchOptions(beam=90, n_best=5, max_extra=2, length_penalty=0.6)
    for seed in range(25):
        model = random_t5(seed, vocab=vocab, **VERSIONS[version])
        source = [4 + seed % 4]
        (found,) = TorchEngine(model).search([source], options)
        best = exhaustive(model, source, vocab, limit=3, alpha=0.6)[:5]
        assert [h.tokens for h in found] == [tokens for _, tokens in best]
        assert [h.score for h in found] == pytest.approx([score for score, _ in best], abs=1e-4)


def test_sampling_and_constraints_work_and_do_not_depend_on_the_batch() -> None:
    engine, sources = TorchEngine(random_t5(5, **VERSIONS["1.1"])), random_sources(12, seed=6)
    sampled = SearchOptions(beam=1, max_extra=5, sample=Sampling(seed=7, top_k=10))
    together = engine.search(sources, sampled)
    alone = [engine.search([source], sampled)[0] for source in sources]
    assert [one.tokens for (one,) in alone] == [one.tokens for (one,) in together]
    phrase, options = RequiredPhrase(((11, 12),)), SearchOptions(beam=3, max_extra=8)
    for source in sources:
        (free,), (bound,) = (engine.search([source], options, [request])[0] for request in
                             (Request(prefix=(9,)), Request(phrases=(phrase,))))  # fmt: skip
        assert free.tokens[0] == 9
        assert (11, 12) in zip(bound.tokens, bound.tokens[1:], strict=False)


@pytest.fixture(scope="module", params=["1.0", "1.1"])
def taught(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model directory: has begun to translate word by word; what it writes depends on what it reads."""
    pair = word_tokenizers()
    torch.manual_seed(1)
    sizes = {"model_dim": 48, "num_heads": 4, "head_dim": 16, "encoder_layers": 1, "decoder_layers": 2, "ff_dim": 64}
    model = T5(vocab=pair.target.size, dropout=0.0, **{**sizes, **VERSIONS[request.param]})
    teach(model, pair, steps=100)
    directory = tmp_path_factory.mktemp("t5") / "model"
    save_model(directory, model, pair, family="t5", languages=("en", "de"))
    return directory


@pytest.mark.parametrize("beam", [1, 4])
def test_ctranslate2_writes_what_torch_writes_on_500_sentences(taught: Path, beam: int) -> None:
    sentences = english_sentences(500, seed=90_000, longest=14)
    ours = headwise.load(taught, engine="torch").translate(sentences, beam=beam)
    theirs = headwise.load(taught, engine="ctranslate2", precision="float32").translate(sentences, beam=beam)
    same = [(one, other) for one, other in zip(ours, theirs, strict=True) if one.text == other.text]
    # Beams differ where a model is unsure: CTranslate2 stops and ranks by slightly other rules (docs/decoding.md).
    assert len(same) >= (500 if beam == 1 else 470)
    for one, other in same:
        assert other.stopped == one.stopped
        assert other.log_probs == pytest.approx(one.log_probs, abs=1e-3)
    assert len({one.text for one in ours}) > 300  # not an empty comparison


def test_a_recipe_of_t5_is_trained_and_a_run_that_was_stopped_ends_with_the_same_weights(tmp_path: Path) -> None:
    recipe = write_small_recipe(
        tmp_path, model={"family": "t5", "preset": "t5-tiny", "head_dim": 8, "dropout": 0.2},
        training={"steps": 6, "save_every": 3, "validate_every": 6},
    )  # fmt: skip
    whole = train(*load_recipe(recipe), tmp_path / "whole")
    train(*load_recipe(recipe, ["training.steps=3"]), tmp_path / "stopped")
    (tmp_path / "stopped" / "finished.json").unlink(missing_ok=True)
    resumed = train(*load_recipe(recipe), tmp_path / "stopped", resume=True)
    first, second = (load_file(run.model / "model.safetensors") for run in (whole, resumed))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert open_bundle(whole.model).architecture["vocab"] == 500
    assert len(headwise.load(whole.model).translate(["The dog sleeps."])) == 1


def test_two_vocabularies_are_refused_in_one_line(tmp_path: Path) -> None:
    recipe = write_small_recipe(tmp_path, model={"family": "t5", "preset": "t5-tiny"}, tokenizer={"shared": False})
    with pytest.raises(RecipeError, match=r"'t5' has one vocabulary: set tokenizer.shared = true"):
        train(*load_recipe(recipe, ["training.steps=1"]), tmp_path / "run")
