"""A published T5 computes here what it computes in `transformers`, reads the same ids, and travels there and back."""

from __future__ import annotations

import gzip
import json
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from fixtures_models import word_tokenizers
from fixtures_published import TEXT, publish_t5
from safetensors.torch import load_file

import headwise
from headwise.bundle.weights import open_model, save_model
from headwise.interop.huggingface.families.t5 import read_beside
from headwise.interop.huggingface.published import Config
from headwise.models.t5 import T5
from headwise.workflows.export import export_model
from headwise.workflows.import_model import import_model

pytest.importorskip("sentencepiece", reason="sentencepiece is not installed: pip install -e '.[dev]'")

VERSIONS: dict[str, dict[str, Any]] = {
    "1.0": {"d_kv": 10, "num_decoder_layers": 1},
    "1.1": {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
}
LINES = [*dict.fromkeys(TEXT.split("\n")), "The <extra_id_0> walks in <extra_id_1> park", "  two   spaces ", "日本 x"]


def orders(bundle: Any) -> tuple[dict[int, int], dict[int, int]]:
    """Our ids to published ones, and back."""
    origin = bundle.card["origin"]["tokenizers"][0]
    special = {int(ours): theirs for ours, theirs in origin["special"].items()}
    others = [number for number in range(origin["rows"]) if number not in special.values()]
    there = dict(enumerate([special[1], special[2], special[3], *others], 1))
    return there, {theirs: ours for ours, theirs in there.items()}


def logits(model: Any, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = model(input_ids=source, decoder_input_ids=target).logits
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_logits_and_ids_are_the_same_after_import_and_after_export(tmp_path: Path, version: str) -> None:
    from transformers import AutoTokenizer, T5ForConditionalGeneration, T5Tokenizer

    theirs = publish_t5(tmp_path / "hub", **VERSIONS[version])
    import_model(tmp_path / "hub", tmp_path / "ours")
    bundle, ours, pair = open_model(tmp_path / "ours")
    there, here = orders(bundle)
    source, target = torch.randint(1, 50, (3, 20)), torch.randint(1, 50, (3, 9))
    target[:, 0] = 0
    expected = logits(theirs, source, target)
    with torch.no_grad():
        found = ours(*(torch.tensor([[here[n] for n in row] for row in ids.tolist()]) for ids in (source, target)))
    columns = [here[number] for number in range(theirs.config.vocab_size)]
    torch.testing.assert_close(found[..., columns], expected, atol=1e-5, rtol=1e-4)
    names = T5Tokenizer.from_pretrained(tmp_path / "hub")
    for line in LINES:
        assert [there[n] for n in pair.source.encode(line)] == names(line)["input_ids"][:-1]
    export_model(tmp_path / "ours", tmp_path / "back", to="huggingface")
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("hub", "back"))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    again = T5ForConditionalGeneration.from_pretrained(tmp_path / "back").eval()
    torch.testing.assert_close(logits(again, source, target), expected, atol=1e-5, rtol=1e-5)
    other = AutoTokenizer.from_pretrained(tmp_path / "back")
    for line in LINES:
        assert other(line)["input_ids"] == names(line)["input_ids"]
    import_model(tmp_path / "back", tmp_path / "again")
    for name in ("model.safetensors", "tokenizer.json"):
        assert (tmp_path / "ours" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_beams_are_those_of_ctranslate2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sentence has its own limit of length, also for hypotheses that are not the best, whatever the batch.

    CTranslate2 spreads the probability of tokens that may not be produced over the others, which matters for a random
    model only; a search of ours that does the same finds the same.
    """
    from headwise.decoding import beam, torch_engine

    def renormalised(log_probs: torch.Tensor, beams: beam.Beams, filters: beam.TokenFilters) -> beam.Candidates:
        return beam.best_continuations(beam.restrict(log_probs, beams, filters).log_softmax(dim=-1), beams)

    publish_t5(tmp_path / "hub")
    import_model(tmp_path / "hub", tmp_path / "ours")
    with_torch = headwise.load(tmp_path / "ours", engine="torch")
    fast = headwise.load(tmp_path / "ours", engine="ctranslate2", precision="float32")
    choose, words = random.Random(1), TEXT.split()
    texts = [" ".join(choose.choices(words, k=choose.randint(1, 4))) for _ in range(80)]
    texts = [text for text in texts if len(with_torch.tokenizers.source.encode(text)) <= 13]  # no loops
    monkeypatch.setattr(torch_engine, "beam_search", partial(beam.beam_search, choose=renormalised))
    for search in ({"beam": 2, "length_penalty": 0.0}, {"beam": 4, "length_penalty": 0.0}, {"beam": 4}):
        found = [[t.ids for t in engine.translate(texts, max_extra=2, **search)] for engine in (with_torch, fast)]
        assert found[0] == found[1], search


@pytest.mark.parametrize("tie", ["all", "none"])
def test_a_model_of_our_own_travels_there_and_back(tmp_path: Path, tie: str) -> None:
    from transformers import AutoTokenizer, T5ForConditionalGeneration

    torch.manual_seed(3)
    pair = word_tokenizers()
    sizes = {"model_dim": 32, "num_heads": 4, "head_dim": 6, "encoder_layers": 2, "decoder_layers": 1, "ff_dim": 48}
    ours = T5(vocab=pair.source.size, tie=tie, gated=tie == "none", activation="gelu-tanh", **sizes).eval()
    save_model(tmp_path / "own", ours, pair, family="t5", languages=("en", "de"))
    export_model(tmp_path / "own", tmp_path / "hub", to="huggingface")
    theirs = T5ForConditionalGeneration.from_pretrained(tmp_path / "hub").eval()
    names = AutoTokenizer.from_pretrained(tmp_path / "hub")
    assert names("one two")["input_ids"] == [*pair.source.encode("one two"), 3]
    source, target = torch.randint(4, 30, (2, 8)), torch.randint(4, 30, (2, 6))
    with torch.no_grad():
        torch.testing.assert_close(ours(source, target), logits(theirs, source, target), atol=1e-5, rtol=1e-5)
    import_model(tmp_path / "hub", tmp_path / "again")
    bundle, back, tokens = open_model(tmp_path / "again")
    assert tokens.target == pair.target
    assert bundle.languages == ("en", "de")
    before, after = ours.state_dict(), back.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("language", ["en", "de", "fr", "cs"])
def test_the_real_sentencepiece_file_gives_the_ids_of_t5_tokenizer(
    real_models: Path, corpora: Path, language: str
) -> None:
    from transformers import T5Tokenizer

    folder = real_models / "t5-tokenizer"
    if not folder.is_dir():
        pytest.skip("no t5-tokenizer among the published models of HEADWISE_MODELS")
    theirs = T5Tokenizer.from_pretrained(folder)
    ours = read_beside(folder, Config(folder / "config.json", json.loads((folder / "config.json").read_text())))
    there = dict(enumerate(ours.numbering.order, ours.numbering.absent))
    tokenizer = ours.assets.tokenizers.source
    assert tokenizer.size == 32129  # padding has no vector there that is not also the start of a target
    with gzip.open(corpora / "multi30k" / f"val.{language}.gz", "rt", encoding="utf-8") as lines:
        texts = [line.rstrip("\n") for line in lines][:500]
    for text in [*texts, "The <extra_id_0> walks in <extra_id_99> park"]:
        assert [there[n] for n in tokenizer.encode(text)] == theirs(text)["input_ids"][:-1]
