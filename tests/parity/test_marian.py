"""A published MarianMT computes here what it computes in `transformers`, and travels there and back."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from fixtures_models import word_tokenizers
from fixtures_published import TEXT, publish_marian
from safetensors.torch import load_file

import headwise
from headwise.bundle.weights import open_model, save_model
from headwise.decoding.options import SearchOptions
from headwise.decoding.torch_engine import TorchEngine
from headwise.interop.huggingface.families.marian import read_beside
from headwise.interop.huggingface.published import Config
from headwise.models.transformer import Transformer
from headwise.workflows.export import export_model
from headwise.workflows.import_model import import_model

pytest.importorskip("sentencepiece", reason="sentencepiece is not installed: pip install -e '.[dev]'")

CONFIGURATIONS: list[dict[str, Any]] = [
    {},
    {"encoder_layers": 1, "decoder_layers": 3},
    {"activation_function": "relu", "d_model": 48},
    {"activation_function": "gelu"},
    {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 20, "decoder_ffn_dim": 20},
    {"d_model": 64, "encoder_attention_heads": 8, "decoder_attention_heads": 8},
]


def sentences(count: int) -> list[str]:
    choose, words = random.Random(1), TEXT.split()
    return [" ".join(choose.choices(words, k=choose.randint(1, 9))) for _ in range(count)]


def published_ids(bundle: Any) -> dict[int, int]:
    """Our ids to published ones."""
    special = {int(ours): theirs for ours, theirs in bundle.card["origin"]["tokenizers"][0]["special"].items()}
    rows = bundle.card["origin"]["tokenizers"][0]["rows"]
    others = [number for number in range(rows) if number not in special.values()]
    return dict(enumerate([special[1], special[2], special[3], *others], 1))


def test_texts_have_the_translations_of_transformers(tmp_path: Path) -> None:
    from transformers import MarianTokenizer

    theirs = publish_marian(tmp_path / "hub")
    import_model(tmp_path / "hub", tmp_path / "ours")
    bundle, _, pair = open_model(tmp_path / "ours")
    there, names = published_ids(bundle), MarianTokenizer.from_pretrained(tmp_path / "hub")
    translator = headwise.load(tmp_path / "ours")
    texts = sentences(50)
    for text in texts:
        assert [there[n] for n in pair.source.encode(text)] == names(text)["input_ids"][:-1]
    pad = theirs.config.pad_token_id
    for beam in (1, 4):
        mine = translator.translate(texts, beam=beam, length_penalty=0.0, max_extra=12, no_repeat_ngram=2)
        for text, translation in zip(texts, mine, strict=True):
            inputs = names(text, return_tensors="pt")
            written = theirs.generate(
                **inputs, num_beams=beam, length_penalty=0.0, early_stopping=False, no_repeat_ngram_size=2,
                max_new_tokens=inputs["input_ids"].size(1) - 1 + 12, forced_eos_token_id=None,
                bad_words_ids=[[pad], [1]],
            )  # fmt: skip
            said = [number for number in written[0, 1:].tolist() if number not in (pad, 0)]
            assert [there[number] for number in translation.ids] == said


@pytest.mark.parametrize("changes", CONFIGURATIONS, ids=lambda changes: ",".join(changes) or "plain")
def test_greedy_search_and_beams_are_those_of_transformers(tmp_path: Path, changes: dict[str, Any]) -> None:
    theirs = publish_marian(tmp_path / "hub", **changes)
    import_model(tmp_path / "hub", tmp_path / "ours")
    bundle, ours, _ = open_model(tmp_path / "ours")
    there, pad = published_ids(bundle), theirs.config.pad_token_id
    here = {theirs: ours for ours, theirs in there.items()}
    source = torch.randint(2, pad, (50, 7))
    ended = torch.cat((source, torch.zeros(50, 1, dtype=torch.long)), dim=1)
    target = torch.randint(2, pad, (50, 5))
    target[:, 0] = pad
    with torch.no_grad():
        expected = theirs(input_ids=ended, decoder_input_ids=target).logits
        found = ours(*(torch.tensor([[here[n] for n in row] for row in ids.tolist()]) for ids in (ended, target)))
    columns = [here[number] for number in range(theirs.config.vocab_size)]
    torch.testing.assert_close(found[..., columns], expected, atol=1e-4, rtol=0)
    for beam in (1, 4):
        written = theirs.generate(
            input_ids=ended, attention_mask=torch.ones_like(ended), num_beams=beam, length_penalty=0.0,
            early_stopping=False, no_repeat_ngram_size=2, max_new_tokens=11, forced_eos_token_id=None,
            bad_words_ids=[[pad], [1]],
        )  # fmt: skip
        options = SearchOptions(beam=beam, length_penalty=0.0, max_extra=4, no_repeat_ngram=2)
        answers = TorchEngine(ours).search([[here[n] for n in row] for row in source.tolist()], options)
        said = [[number for number in row if number not in (pad, 0)] for row in written[:, 1:].tolist()]
        assert [[there[number] for number in best.tokens] for (best,) in answers] == said


@pytest.mark.parametrize("changes", CONFIGURATIONS, ids=lambda changes: ",".join(changes) or "plain")
def test_an_imported_model_is_exported_as_it_was_published(tmp_path: Path, changes: dict[str, Any]) -> None:
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, MarianTokenizer

    theirs = publish_marian(tmp_path / "hub", **changes)
    import_model(tmp_path / "hub", tmp_path / "ours")
    export_model(tmp_path / "ours", tmp_path / "back", to="huggingface")
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("hub", "back"))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    again = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "back").eval()
    one, other = MarianTokenizer.from_pretrained(tmp_path / "hub"), AutoTokenizer.from_pretrained(tmp_path / "back")
    for text in sentences(20):
        inputs = other(text, return_tensors="pt")
        assert inputs["input_ids"].tolist() == [one(text)["input_ids"]]
        with torch.no_grad():
            start = torch.tensor([[theirs.config.pad_token_id, 5, 9, 2]])
            torch.testing.assert_close(
                again(input_ids=inputs["input_ids"], decoder_input_ids=start).logits,
                theirs(input_ids=inputs["input_ids"], decoder_input_ids=start).logits,
                atol=1e-5, rtol=0,
            )  # fmt: skip
    import_model(tmp_path / "back", tmp_path / "again")
    for name in ("model.safetensors", "source.tokenizer.json", "target.tokenizer.json"):
        assert (tmp_path / "ours" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_a_model_of_our_own_travels_there_and_back(tmp_path: Path) -> None:
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    torch.manual_seed(3)
    pair = word_tokenizers()
    sizes = {"model_dim": 32, "num_heads": 4, "encoder_layers": 2, "decoder_layers": 1, "ff_dim": 48}
    ours = Transformer(source_vocab=pair.source.size, **sizes).eval()
    save_model(tmp_path / "own", ours, pair, family="transformer", languages=("en", "de"))
    export_model(tmp_path / "own", tmp_path / "hub", to="huggingface")
    theirs = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "hub").eval()
    names = AutoTokenizer.from_pretrained(tmp_path / "hub")
    assert names("one two")["input_ids"] == [*pair.source.encode("one two"), 3]
    source, target = torch.randint(4, 30, (2, 8)), torch.randint(4, 30, (2, 6))
    with torch.no_grad():
        expected = theirs(input_ids=source, decoder_input_ids=target).logits
        torch.testing.assert_close(ours(source, target), expected, atol=1e-5, rtol=0)
    import_model(tmp_path / "hub", tmp_path / "again")
    bundle, back, tokens = open_model(tmp_path / "again")
    assert tokens.target == pair.target
    assert bundle.languages == ("en", "de")
    before, after = ours.state_dict(), back.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_model_with_two_vocabularies_travels_there_and_back(tmp_path: Path) -> None:
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, MarianTokenizer

    theirs = publish_marian(tmp_path / "hub", separate=True)
    import_model(tmp_path / "hub", tmp_path / "ours")
    _, ours, pair = open_model(tmp_path / "ours")
    assert pair.source.size != pair.target.size
    names, texts = MarianTokenizer.from_pretrained(tmp_path / "hub"), sentences(20)
    # Ours are unknown, begin (padding there) and end, then the others in their order.
    there = {1: 1, 2: 2, 3: 0, **{number: number - 1 for number in range(4, 80)}}
    translator = headwise.load(tmp_path / "ours", engine="torch")
    answers = translator.translate(texts, beam=3, length_penalty=0.0, max_extra=4, no_repeat_ngram=2)
    for text, answer in zip(texts, answers, strict=True):
        inputs = names(text, return_tensors="pt")
        ids = pair.source.encode(text)
        assert [there[n] for n in ids] == inputs["input_ids"][0, :-1].tolist()
        target = [2, *pair.target.encode(text.upper())]
        with torch.no_grad():
            expected = theirs(**inputs, decoder_input_ids=torch.tensor([[there[n] for n in target]])).logits
            found = ours(torch.tensor([[*ids, 3]]), torch.tensor([target]))
        columns = torch.tensor([there[n] for n in range(1, pair.target.size)])
        torch.testing.assert_close(found[..., 1:], expected[..., columns], atol=1e-4, rtol=0)
        written = theirs.generate(
            **inputs, num_beams=3, length_penalty=0.0, early_stopping=False, forced_eos_token_id=None,
            max_new_tokens=len(ids) + 4, bad_words_ids=[[2], [1]], no_repeat_ngram_size=2,
        )  # fmt: skip
        assert [there[n] for n in answer.ids] == [n for n in written[0].tolist() if n not in (0, 2)]
        assert answer.text == names.decode(written[0], skip_special_tokens=True)
    export_model(tmp_path / "ours", tmp_path / "back", to="huggingface")
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("hub", "back"))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "back")
    again = AutoTokenizer.from_pretrained(tmp_path / "back")
    assert all(again(text)["input_ids"] == names(text)["input_ids"] for text in texts)
    import_model(tmp_path / "back", tmp_path / "again")
    for name in ("model.safetensors", "source.tokenizer.json", "target.tokenizer.json"):
        assert (tmp_path / "ours" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_an_imported_model_gives_the_same_in_ctranslate2(tmp_path: Path) -> None:
    publish_marian(tmp_path / "hub")
    import_model(tmp_path / "hub", tmp_path / "ours")
    with_torch = headwise.load(tmp_path / "ours", engine="torch")
    fast = headwise.load(tmp_path / "ours", engine="ctranslate2", precision="float32")
    # Too short for the loop guard: a random model repeats itself, and CTranslate2 searches on in a loop.
    texts = [text for text in sentences(120) if len(with_torch.tokenizers.source.encode(text)) <= 13][:40]
    assert len(texts) == 40
    for search in ({"beam": 1}, {"beam": 2, "length_penalty": 1.0}, {"beam": 4}):
        found = [[t.ids for t in engine.translate(texts, max_extra=2, **search)] for engine in (with_torch, fast)]
        assert found[0] == found[1], search


@pytest.mark.parametrize("language", ["en", "de", "fr", "cs", "zh"])
def test_real_opus_files_give_the_ids_of_marian_tokenizer(real_models: Path, corpora: Path, language: str) -> None:
    from transformers import MarianTokenizer

    folder = real_models / "opus-mt-en-mg-tokenizer"
    if not folder.is_dir():
        pytest.skip("no opus-mt-en-mg-tokenizer among the published models of HEADWISE_MODELS")
    theirs = MarianTokenizer.from_pretrained(folder)
    ours = read_beside(folder, Config(folder / "config.json", json.loads((folder / "config.json").read_text())))
    there = dict(enumerate(ours.numbering.order, ours.numbering.absent))
    pair = ours.assets.tokenizers
    with gzip.open(
        corpora / ("tatoeba-zh-en" if language == "zh" else "multi30k") / f"val.{language}.gz", "rt", encoding="utf-8"
    ) as lines:
        texts = [line.rstrip("\n") for line in lines][:1000]
    assert len(texts) == 1000
    for text in texts:
        assert [there[n] for n in pair.source.encode(text)] == theirs(text)["input_ids"][:-1]
        if language != "zh":  # where unknown tokens stand side by side, ours are one
            assert [there[n] for n in pair.target.encode(text)] == theirs(text_target=text)["input_ids"][:-1]


def test_weights_in_shards_and_language_tags_are_read(tmp_path: Path) -> None:
    from transformers import AutoTokenizer, MarianTokenizer

    theirs = publish_marian(tmp_path / "hub")
    import_model(tmp_path / "hub", tmp_path / "ours")
    (tmp_path / "hub" / "model.safetensors").unlink()
    theirs.save_pretrained(tmp_path / "hub", max_shard_size="20KB")
    assert len(list((tmp_path / "hub").glob("model-*.safetensors"))) > 2
    import_model(tmp_path / "hub", tmp_path / "again")
    for name in ("model.safetensors", "source.tokenizer.json"):
        assert (tmp_path / "ours" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    bundle, _, pair = open_model(tmp_path / "again")
    there, names = published_ids(bundle), MarianTokenizer.from_pretrained(tmp_path / "hub")
    export_model(tmp_path / "again", tmp_path / "back", to="huggingface")
    exported = AutoTokenizer.from_pretrained(tmp_path / "back")
    for text in (">>fra<< the lazy dog", ">>fra<<the dog"):
        ids = names(text)["input_ids"]
        assert ids[0] == names.convert_tokens_to_ids(">>fra<<")
        assert [there[number] for number in pair.source.encode(text)] == ids[:-1]
        assert exported(text)["input_ids"] == ids
