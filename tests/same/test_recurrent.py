"""A recurrent model: cached and unrolled, padded and alone, resumed and uninterrupted, out and in say the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from fixtures_decoding import Uncached, random_sources
from fixtures_models import english_sentences, german, word_tokenizers
from starlette.testclient import TestClient
from torch.testing import assert_close

import headwise as hw
from headwise.bundle.directory import open_bundle
from headwise.bundle.weights import load_model, save_model
from headwise.config.recipe import build_recipe
from headwise.decoding.beam import beam_search
from headwise.decoding.fast_step import fast_stepper
from headwise.decoding.options import SearchOptions
from headwise.decoding.source_batches import Sources
from headwise.decoding.token_loop import greedy_search
from headwise.errors import ModelError
from headwise.models.recurrent import RecurrentSeq2Seq
from headwise.serving.app import Service
from headwise.tasks.alignments import alignments
from headwise.text.tokenizer import EOS
from headwise.workflows.evaluate import evaluate
from headwise.workflows.look import look_inside
from headwise.workflows.serve import open_models
from headwise.workflows.train import train

KINDS: dict[str, dict[str, Any]] = {
    "Luong": {},
    "Luong, dot, GRU": {"attention": "dot", "cell": "gru"},
    "Bahdanau's scores": {"attention": "additive", "cell": "gru"},
    "one layer": {"decoder_layers": 1, "encoder_layers": 1, "bidirectional": False},
    "no input feeding": {"input_feeding": False},
    "additive without input feeding": {"attention": "additive", "input_feeding": False, "cell": "gru"},
    "no attention": {"attention": "none"},
}


def random_recurrent(seed: int, kind: str, vocab: int = 60) -> RecurrentSeq2Seq:
    torch.manual_seed(seed)
    sizes = {"model_dim": 24, "hidden_dim": 32, "tie": "none", **KINDS[kind]}
    model = RecurrentSeq2Seq(source_vocab=vocab, target_vocab=vocab, **sizes).eval()
    with torch.no_grad():  # spread, so that rounding does not decide between two tokens
        for name, parameter in model.named_parameters():
            parameter.mul_(4.0 if name == "output.weight" else 2.0)
        model.output.weight[EOS].mul_(1.75)
    return model


@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_a_cached_step_gives_the_states_of_the_unrolled_pass_while_rows_move_and_sentences_leave(kind: str) -> None:
    model = random_recurrent(1, kind)
    steppers = model, Uncached(model)  # type: ignore[arg-type]
    torch.manual_seed(2)
    ids, lengths = torch.randint(4, 60, (3, 7)), torch.tensor([7, 4, 6])
    states = [stepper.start((ids, lengths), 2) for stepper in steppers]
    rows, moves = 3, {0: [0, 0, 1, 1, 2, 2], 3: [1, 0, 3, 3, 5, 4], 5: [3, 2, 4, 5]}  # one hypothesis each at first
    for step in range(9):
        tokens = torch.randint(4, 60, (rows,))
        own, whole = (stepper.advance(state, tokens) for stepper, state in zip(steppers, states, strict=True))
        assert_close(own, whole, atol=2e-5, rtol=1e-4)
        assert states[0].length == step + 1
        if step in moves:
            rows = len(moves[step])
            for state in states:
                state.reorder(torch.tensor(moves[step]))


@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_several_tokens_at_once_and_several_rows_at_first_are_the_same_steps(kind: str) -> None:
    model = random_recurrent(3, kind)
    ids, tokens = torch.randint(4, 60, (2, 5)), torch.randint(4, 60, (4, 3))
    whole = model.states(ids.repeat_interleave(2, dim=0), tokens)
    assert_close(model.advance(model.start((ids, None), 2), tokens), whole[:, -1], atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_padding_and_neighbours_change_nothing(kind: str) -> None:
    model = random_recurrent(4, kind)
    source, target = torch.randint(4, 60, (3, 8)), torch.randint(4, 60, (3, 6))
    lengths, wanted = torch.tensor([8, 3, 5]), torch.tensor([6, 4, 2])
    batch = model(source, target, lengths, wanted)
    for row, (size, end) in enumerate(zip(lengths.tolist(), wanted.tolist(), strict=True)):
        alone = model(source[row : row + 1, :size], target[row : row + 1, :end])
        assert_close(batch[row : row + 1, :end], alone, atol=1e-4, rtol=1e-4)
    source[1, 3:], source[2, 5:], target[2, 2:] = 7, 8, 9  # other padding
    other = model(source, target, lengths, wanted)
    for row, end in enumerate(wanted.tolist()):
        assert_close(other[row, :end], batch[row, :end], atol=0, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_cached_search_finds_what_uncached_search_finds(kind: str) -> None:
    model = random_recurrent(5, kind)
    assert fast_stepper(model) is model, "it decodes by its own step"
    options = SearchOptions(beam=4, n_best=4, max_extra=5)
    sources = Sources.of(range(20), random_sources(20, seed=4), None, options)
    searched = Uncached(model), model  # type: ignore[arg-type]
    slow, fast = (beam_search(each, sources, options) for each in searched)
    assert [[h.tokens for h in found] for found in fast] == [[h.tokens for h in found] for found in slow]
    assert [h.score for found in fast for h in found] == pytest.approx(
        [h.score for found in slow for h in found], abs=1e-3
    )
    slow_greedy, fast_greedy = (greedy_search(each, sources, options) for each in searched)
    assert [h.tokens for h in slow_greedy] == [h.tokens for h in fast_greedy]


# ---- the ordinary way: train, resume, load, translate, evaluate, look, serve


def recipe(folder: Path, steps: int, **model: object) -> Any:
    folder.mkdir(exist_ok=True)
    for name, count, seed in (("train", 200, 1), ("valid", 4, 2)):
        sentences = english_sentences(count, seed)
        (folder / f"{name}.en").write_text("\n".join(sentences) + "\n", encoding="utf-8")
        (folder / f"{name}.de").write_text("\n".join(map(german, sentences)) + "\n", encoding="utf-8")
    return build_recipe({
        "data": {
            "source": "train.en", "target": "train.de", "languages": ["en", "de"],
            "validation": {"source": "valid.en", "target": "valid.de"},
        },
        "tokenizer": {"kind": "word", "size": 100},
        "model": {
            "family": "rnn", "preset": "rnn-tiny", "model_dim": 32, "hidden_dim": 48, "decoder_layers": 2, **model
        },
        "training": {
            "steps": steps, "batch_tokens": 150, "schedule": "constant", "learning_rate": 0.005, "warmup": 5,
            "label_smoothing": 0.1, "validate_every": 10, "save_every": 5, "log_every": 10, "threads": 2, "ema": 0.9,
        },
    })  # fmt: skip


@pytest.mark.parametrize("kind", ["Luong", "additive without input feeding"])
def test_a_run_that_is_resumed_ends_with_the_weights_of_one_that_was_not(tmp_path: Path, kind: str) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    first = train(recipe(whole, 10, **KINDS[kind]), whole, whole / "run")
    train(recipe(parts, 5, **KINDS[kind]), parts, parts / "run")
    second = train(recipe(parts, 10, **KINDS[kind]), parts, parts / "run")
    for file in ("training.safetensors", "model/model.safetensors"):
        one, other = (run / "checkpoints/step-00000010" / file for run in (first.run, second.run))
        assert one.read_bytes() == other.read_bytes(), file


def test_a_trained_model_is_loaded_searched_evaluated_looked_at_and_served(tmp_path: Path) -> None:
    model = train(recipe(tmp_path, 20), tmp_path, tmp_path / "run").model
    bundle = open_bundle(model)
    assert (bundle.family, bundle.task_name) == ("rnn", "translate")
    translator = hw.load(model)
    assert translator.engine.name == "torch", "CTranslate2 has no such model"
    texts = english_sentences(8, seed=3)
    greedy, beam = translator.translate(texts, beam=1), translator.translate(texts, beam=4)
    assert [one.text for one in hw.load(model).translate(texts, beam=4)] == [one.text for one in beam]
    assert sum(one.score for one in beam) >= sum(one.score for one in greedy) - 1e-4

    for name, lines in (("test.en", texts), ("test.de", [german(text) for text in texts])):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    scores = evaluate(str(model), source=str(tmp_path / "test.en"), reference=[str(tmp_path / "test.de")])
    assert scores.lines()

    look = look_inside(model, texts[0])
    words = len(texts[0].split())
    assert {kind: array.shape[:2] for kind, array in look.attention.items()} == {"cross": (1, 1)}
    assert look.attention["cross"].shape[-1] == words + 1
    assert look.attention["cross"].sum(axis=-1) == pytest.approx(1.0, abs=1e-5)
    assert look.positions is None
    assert look.saliency.shape == look.attention["cross"].shape[2:]
    assert str(look.alignment()) == alignments(translator, texts[:1], translator.translate(texts[:1]))[0]
    for suffix in ("html", "svg"):
        look.save(tmp_path / f"look.{suffix}")
    look.save(tmp_path / "alignment.svg", what="alignment")

    with TestClient(Service(open_models([f"words={model}"])), base_url="http://127.0.0.1") as client:
        assert client.get("/models").json()["models"][0]["engine"] == "torch"
        answer = client.post("/translate", json={"q": texts, "source": "en", "target": "de"}).json()
        assert answer["translatedText"] == [one.text for one in translator.translate(texts)]
        assert "Cross-attention" in client.post("/look", json={"text": texts[0]}).text


def test_a_model_without_attention_translates_and_says_that_there_is_nothing_to_see(tmp_path: Path) -> None:
    model = train(recipe(tmp_path, 2, attention="none"), tmp_path, tmp_path / "run").model
    translator = hw.load(model)
    texts = english_sentences(3, seed=3)
    translations = translator.translate(texts)
    assert len(translations) == 3
    with pytest.raises(hw.HeadwiseError, match="no attention"):
        look_inside(model, texts[0]).panels()
    with pytest.raises(hw.HeadwiseError, match="no attention"):
        look_inside(model, texts[0]).alignment()
    with pytest.raises(hw.HeadwiseError, match="no attention"):
        alignments(translator, texts, [one._replace(ids=(5, 6)) for one in translations])
    assert look_inside(model, texts[0]).saliency.shape[0] > 0


def test_a_model_directory_that_was_changed_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    tokenizers = word_tokenizers()
    model = random_recurrent(1, "Luong", tokenizers.source.size)
    model.architecture["hidden_dim"] = 10**6
    save_model(tmp_path / "model", model, tokenizers, family="rnn", languages=("en", "de"))
    with pytest.raises(ModelError, match="does not fit"):
        load_model(open_bundle(tmp_path / "model"))
