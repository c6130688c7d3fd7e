"""Exported tokenizer files give `AutoTokenizer` the ids of the model, on a thousand real sentences."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest
import torch
from fixtures_published import publish_gpt2, randomised

from headwise.bundle.weights import save_model
from headwise.config import schema
from headwise.config.families.lm import FAMILY
from headwise.models.lm import LanguageModel
from headwise.models.transformer import Transformer
from headwise.text.tokenizer import EOS, Tokenizer, TokenizerPair
from headwise.workflows.export import export_model
from headwise.workflows.import_model import import_model


@pytest.fixture
def real_sentences(corpora: Path) -> list[str]:
    """250 in each of four languages."""
    found = []
    for language in ("en", "de", "fr", "cs"):
        with gzip.open(corpora / "multi30k" / f"val.{language}.gz", "rt", encoding="utf-8") as lines:
            found += [next(lines).rstrip("\n") for _ in range(250)]
    assert len(set(found)) == 1000
    return found


def test_a_model_with_the_real_files_of_opus_mt(tmp_path: Path, real_models: Path, real_sentences: list[str]) -> None:
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, MarianConfig, MarianMTModel, MarianTokenizer

    folder = real_models / "opus-mt-en-mg-tokenizer"
    if not folder.is_dir():
        pytest.skip("no opus-mt-en-mg-tokenizer among the published models of HEADWISE_MODELS")
    (tmp_path / "hub").mkdir()
    for name in ("source.spm", "target.spm", "vocab.json", "tokenizer_config.json"):
        shutil.copyfile(folder / name, tmp_path / "hub" / name)
    small = {
        "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2,
        "decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16,
    }  # fmt: skip
    values = {**json.loads((folder / "config.json").read_text()), **small}
    torch.manual_seed(1)
    randomised(MarianMTModel(MarianConfig(**values))).save_pretrained(tmp_path / "hub")  # type: ignore[operator]
    import_model(tmp_path / "hub", tmp_path / "ours")
    export_model(tmp_path / "ours", tmp_path / "back", to="huggingface")
    one, other = MarianTokenizer.from_pretrained(tmp_path / "hub"), AutoTokenizer.from_pretrained(tmp_path / "back")
    for text in real_sentences:
        assert other(text)["input_ids"] == one(text)["input_ids"]
    before, after = (AutoModelForSeq2SeqLM.from_pretrained(tmp_path / name).eval() for name in ("hub", "back"))
    inputs, start = one(real_sentences[0], return_tensors="pt"), torch.tensor([[before.config.pad_token_id]])
    with torch.no_grad():
        expected, found = (model(**inputs, decoder_input_ids=start).logits for model in (before, after))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_a_gpt2(tmp_path: Path, real_sentences: list[str]) -> None:
    from transformers import AutoTokenizer

    publish_gpt2(tmp_path / "hub")
    import_model(tmp_path / "hub", tmp_path / "ours")
    export_model(tmp_path / "ours", tmp_path / "back", to="huggingface")
    one, other = (AutoTokenizer.from_pretrained(tmp_path / name) for name in ("hub", "back"))
    assert all(one.encode(text) == other.encode(text) for text in real_sentences)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word", "char", "byte"])
def test_a_translator_of_our_own(tmp_path: Path, real_sentences: list[str], kind: str) -> None:
    from transformers import AutoTokenizer

    tokenizer = Tokenizer.train(real_sentences, schema.Tokenizer.model_validate({"kind": kind, "size": 2000}))
    model = Transformer(
        source_vocab=tokenizer.size, model_dim=16, num_heads=2, encoder_layers=1, decoder_layers=1, ff_dim=16
    )
    save_model(tmp_path / "own", model, TokenizerPair.one(tokenizer), family="transformer")
    export_model(tmp_path / "own", tmp_path / "hub", to="huggingface")
    theirs = AutoTokenizer.from_pretrained(tmp_path / "hub")
    assert all(theirs(text)["input_ids"] == [*tokenizer.encode(text), EOS] for text in real_sentences)


@pytest.mark.parametrize("kind", ["bpe", "byte"])
def test_a_language_model_of_our_own(tmp_path: Path, real_sentences: list[str], kind: str) -> None:
    from transformers import AutoTokenizer

    tokenizer = Tokenizer.train(real_sentences, schema.Tokenizer.model_validate({"kind": kind, "size": 2000}))
    sizes = {**FAMILY.presets["gpt2"], "model_dim": 16, "num_heads": 2, "layers": 1, "ff_dim": 16, "max_length": 16}
    save_model(
        tmp_path / "own", LanguageModel(vocab=tokenizer.size, **sizes), TokenizerPair.one(tokenizer), family="lm"
    )
    export_model(tmp_path / "own", tmp_path / "hub", to="huggingface")
    theirs = AutoTokenizer.from_pretrained(tmp_path / "hub")
    assert all(theirs(text)["input_ids"] == tokenizer.encode(text) for text in real_sentences)
