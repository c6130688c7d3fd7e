"""A published BERT computes here what it computes in `transformers`, and travels there and back."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
import tomli_w
import torch
from fixtures_encoders import train_recipe
from fixtures_published import publish_bert
from safetensors.torch import load_file, save_file
from small_tables import write_table_recipe

import headwise
from headwise.errors import ModelError, UsageError
from headwise.workflows.export import export_model
from headwise.workflows.import_model import import_model

TEXTS = ["the quick brown fox", "Again; and again!", "a [MASK] b"]
LABELS = {"id2label": {0: "bad", 1: "fair", 2: "good"}, "label2id": {"bad": 0, "fair": 1, "good": 2}}


def theirs_of(folder: Path, kind: str):  # type: ignore[no-untyped-def]
    import transformers

    return getattr(transformers, kind).from_pretrained(folder).eval(), transformers.AutoTokenizer.from_pretrained(
        folder
    )


def test_labels_have_the_probabilities_of_transformers(tmp_path: Path) -> None:
    publish_bert(tmp_path / "hub", "BertForSequenceClassification", **LABELS)
    import_model(tmp_path / "hub", tmp_path / "ours")
    model, names = theirs_of(tmp_path / "hub", "BertForSequenceClassification")
    classifier = headwise.load(tmp_path / "ours", engine="torch")
    assert classifier.labels == ("bad", "fair", "good")
    for text, answer in zip(TEXTS[:2], classifier.classify(TEXTS[:2]), strict=True):
        with torch.no_grad():
            expected = model(**names(text, return_tensors="pt")).logits.softmax(-1)[0]
        found = [answer.probabilities[label] for label in classifier.labels]
        assert np.allclose(found, expected.numpy(), atol=1e-5)


PAIRS = [("the quick brown fox", "again and again"), ("a", "the lazy dog; 12 birds"), ("the fox " * 30, "a dog")]


def test_a_classifier_of_pairs_has_the_probabilities_of_transformers_there_and_back(tmp_path: Path) -> None:
    publish_bert(tmp_path / "hub", "BertForSequenceClassification", **LABELS)
    # The class that real files name; the one of the other tests leaves token_type_ids out unless it is told to.
    config = tmp_path / "hub/tokenizer_config.json"
    names = ["input_ids", "token_type_ids", "attention_mask"]
    config.write_text(json.dumps({**json.loads(config.read_text()), "model_input_names": names}))
    import_model(tmp_path / "hub", tmp_path / "ours", pairs=True)
    export_model(tmp_path / "ours", tmp_path / "back", to="huggingface")
    classifiers = [
        headwise.load(tmp_path / "ours", engine=engine, precision="float32") for engine in ("torch", "ctranslate2")
    ]
    for pair in PAIRS:
        for folder in ("hub", "back"):
            model, names = theirs_of(tmp_path / folder, "BertForSequenceClassification")
            inputs = names(*pair, return_tensors="pt", truncation=True, max_length=40)
            assert inputs["token_type_ids"].max() == 1
            with torch.no_grad():
                expected = model(**inputs).logits[0].numpy()
            for classifier in classifiers:
                assert np.allclose(classifier.logits([pair])[0], expected, atol=1e-5)
    with pytest.raises(UsageError, match="reads pairs of texts"):
        classifiers[0].classify(["a single text"])
    publish_bert(tmp_path / "plain")
    with pytest.raises(UsageError, match=r"--pairs is for classifiers of texts, but .*plain has the task embed"):
        import_model(tmp_path / "plain", tmp_path / "none", pairs=True)


@pytest.mark.parametrize("kind", ["BertModel", "BertForMaskedLM"])
def test_a_model_with_a_vocabulary_file_alone_is_exported_with_its_special_tokens(tmp_path: Path, kind: str) -> None:
    publish_bert(tmp_path / "hub", kind)
    _, names = theirs_of(tmp_path / "hub", kind)
    pieces = sorted(names.get_vocab().items(), key=lambda item: item[1])
    (tmp_path / "hub/tokenizer.json").unlink()
    (tmp_path / "hub/vocab.txt").write_text("\n".join(piece for piece, _ in pieces), encoding="utf-8")
    import_model(tmp_path / "hub", tmp_path / "ours")
    export_model(tmp_path / "ours", tmp_path / "back", to="huggingface")
    _, again = theirs_of(tmp_path / "back", kind)
    assert [again(text)["input_ids"] for text in TEXTS] == [names(text)["input_ids"] for text in TEXTS]
    assert (again.model_max_length, again("a", "b")["token_type_ids"]) == (40, [0, 0, 0, 1, 1])


def test_gaps_have_the_candidates_of_transformers(tmp_path: Path) -> None:
    publish_bert(tmp_path / "hub", "BertForMaskedLM")
    import_model(tmp_path / "hub", tmp_path / "ours")
    model, names = theirs_of(tmp_path / "hub", "BertForMaskedLM")
    inputs = names("the [MASK] fox", return_tensors="pt")
    with torch.no_grad():
        logits = model(**inputs).logits[0, inputs["input_ids"][0].tolist().index(names.mask_token_id)]
    logits[[0, 2, 3, 4, 5]] = -torch.inf  # special tokens fill nothing
    best = logits.softmax(-1).topk(3)
    (filled,) = headwise.load(tmp_path / "ours", engine="torch").fill(["the [MASK] fox"], top=3)
    assert [c.text for c in filled.gaps[0]] == [
        names.convert_ids_to_tokens(int(i)).removeprefix("##") for i in best.indices
    ]
    assert np.allclose([c.probability for c in filled.gaps[0]], best.values.numpy(), atol=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_vectors_are_pooled_as_sentence_transformers_files_say(tmp_path: Path, pooling: str) -> None:
    publish_bert(tmp_path / "hub")
    (tmp_path / "hub/1_Pooling").mkdir()
    modes = {"pooling_mode_cls_token": pooling == "first", "pooling_mode_mean_tokens": pooling == "mean"}
    (tmp_path / "hub/1_Pooling/config.json").write_text(json.dumps(modes))
    import_model(tmp_path / "hub", tmp_path / "ours")
    model, names = theirs_of(tmp_path / "hub", "BertModel")
    for text in TEXTS[:2]:
        with torch.no_grad():
            states = model(**names(text, return_tensors="pt")).last_hidden_state[0]
        expected = torch.nn.functional.normalize(states.mean(0) if pooling == "mean" else states[0], dim=0).numpy()
        found = headwise.load(tmp_path / "ours", engine="torch").embed([text])[0]
        assert np.allclose(found, expected, atol=1e-5)


def test_long_texts_are_cut_where_sentence_transformers_cuts_them(tmp_path: Path) -> None:
    publish_bert(tmp_path / "hub")
    (tmp_path / "hub/sentence_bert_config.json").write_text('{"max_seq_length": 5}')
    import_model(tmp_path / "hub", tmp_path / "ours")
    model, names = theirs_of(tmp_path / "hub", "BertModel")
    text = "the quick brown fox jumps over the dog"
    with torch.no_grad():
        cut = names(text, return_tensors="pt", truncation=True, max_length=5)
        expected = torch.nn.functional.normalize(model(**cut).last_hidden_state[0].mean(0), dim=0).numpy()
    assert cut["input_ids"].size(1) == 5
    for engine in ("torch", "ctranslate2"):
        found = headwise.load(tmp_path / "ours", engine=engine, precision="float32").embed(text)
        assert np.allclose(found, expected, atol=1e-5)
    export_model(tmp_path / "ours", tmp_path / "back", to="huggingface")
    assert json.loads((tmp_path / "back/sentence_bert_config.json").read_text())["max_seq_length"] == 5
    (tmp_path / "hub/sentence_bert_config.json").write_text('{"max_seq_length": "5"}')
    with pytest.raises(ModelError, match=r"sentence_bert_config\.json: max_seq_length must be a whole number"):
        import_model(tmp_path / "hub", tmp_path / "other")
    (tmp_path / "ours/preprocessing.json").write_text('{"longest": -1}')
    with pytest.raises(ModelError, match=r"preprocessing\.json"):
        headwise.load(tmp_path / "ours").embed(text)


@pytest.mark.parametrize("kind", ["BertModel", "BertForMaskedLM", "BertForSequenceClassification"])
def test_an_imported_model_is_exported_as_it_was_published(tmp_path: Path, kind: str) -> None:
    publish_bert(tmp_path / "hub", kind)
    import_model(tmp_path / "hub", tmp_path / "ours")
    export_model(tmp_path / "ours", tmp_path / "back", to="huggingface")
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("hub", "back"))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    (_, one), (_, other) = (theirs_of(tmp_path / name, kind) for name in ("hub", "back"))
    assert all(one(text)["input_ids"] == other(text)["input_ids"] for text in TEXTS)


def test_our_own_classifier_opens_in_transformers(classifier_model: Path, tmp_path: Path) -> None:
    recipe = write_table_recipe(tmp_path, model={"norm": "post", "pooling": "first"}, training={"steps": 3})
    model = train_recipe(recipe, tmp_path / "run")
    export_model(model, tmp_path / "hub", to="huggingface")
    theirs, names = theirs_of(tmp_path / "hub", "BertForSequenceClassification")
    with torch.no_grad():
        expected = theirs(**names("dog cat red", return_tensors="pt")).logits[0].numpy()
    found = headwise.load(model, engine="torch").logits(["dog cat red"])[0]
    assert np.allclose(found, expected, atol=1e-5)
    import_model(tmp_path / "hub", tmp_path / "again")
    assert np.allclose(headwise.load(tmp_path / "again", engine="torch").logits(["dog cat red"])[0], found, atol=1e-5)
    with pytest.raises(headwise.HeadwiseError, match="norm = 'post'"):
        export_model(classifier_model, tmp_path / "other", to="huggingface")


def test_a_classifier_from_sentence_vectors_is_exported_if_it_learned_from_the_first_token(tmp_path: Path) -> None:
    publish_bert(tmp_path / "hub")
    import_model(tmp_path / "hub", tmp_path / "vectors")
    recipe, models = write_table_recipe(tmp_path, training={"steps": 2}), {}
    values = tomllib.loads(recipe.read_text())
    for pooling in ("mean", "first"):
        given = {} if pooling == "mean" else {"pooling": pooling}  # the mean is that of the vectors
        values["model"] = {"family": "bert", "from": "vectors", **given}
        recipe.write_text(tomli_w.dumps(values))
        models[pooling] = train_recipe(recipe, tmp_path / pooling)
    with pytest.raises(headwise.HeadwiseError, match=r"first token: train with model\.pooling = 'first'"):
        export_model(models["mean"], tmp_path / "refused", to="huggingface")
    export_model(models["first"], tmp_path / "exported", to="huggingface")
    theirs, names = theirs_of(tmp_path / "exported", "BertForSequenceClassification")
    with torch.no_grad():
        expected = theirs(**names("a quick fox", return_tensors="pt")).logits[0].numpy()
    found = headwise.load(models["first"], engine="torch").logits(["a quick fox"])[0]
    assert np.allclose(found, expected, atol=1e-5)


def test_old_names_and_a_vocabulary_as_text_are_read(tmp_path: Path) -> None:
    hub = tmp_path / "hub"
    publish_bert(hub)
    import_model(hub, tmp_path / "new")
    weights = load_file(hub / "model.safetensors")
    old = {
        n.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): t
        for n, t in weights.items()
    }
    save_file(old, hub / "model.safetensors")
    vocabulary = json.loads((hub / "tokenizer.json").read_text())["model"]["vocab"]
    (hub / "vocab.txt").write_text("".join(f"{name}\n" for name in sorted(vocabulary, key=vocabulary.__getitem__)))
    (hub / "tokenizer.json").unlink()
    import_model(hub, tmp_path / "ours")
    one, other = (headwise.load(tmp_path / name, engine="torch").embed(TEXTS[:2]) for name in ("new", "ours"))
    assert np.allclose(one, other, atol=1e-6)


def test_a_pickle_is_refused_with_a_remedy(tmp_path: Path) -> None:
    publish_bert(tmp_path / "hub")
    (tmp_path / "hub/model.safetensors").rename(tmp_path / "hub/pytorch_model.bin")
    with pytest.raises(ModelError, match=r"pytorch_model\.bin is a pickle.*convert it to model\.safetensors"):
        import_model(tmp_path / "hub", tmp_path / "ours")


def test_a_real_pickle_is_refused_and_nothing_is_made(tmp_path: Path, pickled_bert: Path) -> None:
    with pytest.raises(ModelError, match=r"pytorch_model\.bin is a pickle, which can run code, so it is not opened"):
        import_model(pickled_bert, tmp_path / "ours")
    assert list(tmp_path.iterdir()) == []


def test_the_real_minilm_has_the_vectors_of_sentence_transformers(tmp_path: Path, corpora: Path, minilm: Path) -> None:
    import csv
    import gzip

    import_model(minilm, tmp_path / "minilm")
    with gzip.open(corpora / "banking77/test.csv.gz", "rt", encoding="utf-8") as stream:
        texts = [row["text"] for row in csv.DictReader(stream)][:200]
    model, names = theirs_of(minilm, "BertModel")
    inputs = names(texts, return_tensors="pt", padding=True)
    with torch.no_grad():
        states = model(**inputs).last_hidden_state
    mask = inputs["attention_mask"][..., None].float()
    expected = torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=-1).numpy()
    found = headwise.load(tmp_path / "minilm", engine="torch").embed(texts)
    assert (found * expected).sum(axis=1).min() >= 0.99999
