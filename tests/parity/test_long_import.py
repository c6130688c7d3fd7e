"""A published Longformer or BigBird computes here what it computes in `transformers`, and travels there and back."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
import torch
from fixtures_encoders import cut_in_two, train_recipe
from fixtures_published import publish_long
from safetensors.torch import load_file
from small_tables import labelled_texts, write_table, write_table_recipe

import headwise
from headwise.bundle.weights import open_model, save_model
from headwise.errors import UsageError
from headwise.models.bigbird import BigBird
from headwise.models.longformer import Longformer
from headwise.workflows.export import export_model
from headwise.workflows.import_model import import_model

TEXT = "the quick brown fox jumps over the lazy dog and then it sleeps again"
# One within a window or all blocks, others of several.
TEXTS = ["the quick brown fox", TEXT, f"{TEXT} {TEXT}"]
LABELS = {"id2label": {0: "bad", 1: "fair", 2: "good"}, "label2id": {"bad": 0, "fair": 1, "good": 2}}
NAMES = ["Longformer", "BigBird"]
MASKS = {"Longformer": "<mask>", "BigBird": "[MASK]"}


def inputs_of(name: str, tokenizer: Any, text: str) -> dict[str, torch.Tensor]:
    """As a user of transformers gives them; the first token is global, as it is for labels."""
    inputs = dict(tokenizer(text, return_tensors="pt", return_token_type_ids=False))
    if name == "Longformer":
        inputs["global_attention_mask"] = torch.zeros_like(inputs["input_ids"])
        inputs["global_attention_mask"][:, 0] = 1
    return inputs


def opened(folder: Path, kind: str) -> tuple[Any, Any]:
    """A fresh copy each time: a BigBird that has read a short text computes long ones in another way."""
    import transformers

    model, found = getattr(transformers, kind).from_pretrained(folder, output_loading_info=True)
    assert not found["missing_keys"]
    assert not found["unexpected_keys"]
    return model.eval(), transformers.AutoTokenizer.from_pretrained(folder)


@pytest.mark.parametrize("name", NAMES)
def test_labels_have_the_logits_of_transformers(tmp_path: Path, name: str) -> None:
    kind = f"{name}ForSequenceClassification"
    publish_long(tmp_path / "hub", kind, **LABELS)
    import_model(tmp_path / "hub", tmp_path / "ours")
    classifier = headwise.load(tmp_path / "ours", engine="torch")
    assert classifier.labels == ("bad", "fair", "good")
    for text in TEXTS:
        model, tokenizer = opened(tmp_path / "hub", kind)
        with torch.no_grad():
            expected = model(**tokenizer(text, return_tensors="pt", return_token_type_ids=False)).logits[0]
        assert np.allclose(classifier.logits([text])[0], expected.numpy(), atol=1e-4)


def test_a_pair_has_the_logits_of_transformers_there_and_back(tmp_path: Path) -> None:
    """Between its texts a Longformer has two ends, as RoBERTa, and one only where it learned that here."""
    kind = "LongformerForSequenceClassification"
    publish_long(tmp_path / "hub", kind, **LABELS)
    import_model(tmp_path / "hub", tmp_path / "ours", pairs=True)
    export_model(tmp_path / "ours", tmp_path / "back", to="huggingface")
    classifier = headwise.load(tmp_path / "ours", engine="torch")
    for pair in [("the quick brown fox", "it sleeps"), (TEXT, f"{TEXT} {TEXT}")]:
        for folder in ("hub", "back"):
            model, tokenizer = opened(tmp_path / folder, kind)
            inputs = tokenizer(*pair, return_tensors="pt")
            assert (inputs["input_ids"] == tokenizer.sep_token_id).sum() == 3
            with torch.no_grad():
                expected = model(**inputs).logits[0].numpy()
            assert np.allclose(classifier.logits([pair])[0], expected, atol=1e-4)


def test_a_classifier_of_pairs_that_was_fine_tuned_has_two_ends_too(tmp_path: Path) -> None:
    publish_long(tmp_path / "hub", "LongformerModel")
    import_model(tmp_path / "hub", tmp_path / "start")
    columns = ("text", "second", "label")
    recipe = write_table_recipe(tmp_path, data={"columns": list(columns)}, training={"steps": 2})
    for seed, name in enumerate(("train", "val")):
        rows = [(*cut_in_two(text), label) for text, label in labelled_texts(300, seed)]
        write_table(tmp_path / f"{name}.csv", rows, columns)
    values = tomllib.loads(recipe.read_text())
    values["model"] = {"family": "longformer", "from": "start", "pooling": "first"}
    recipe.write_text(tomli_w.dumps(values))
    model = train_recipe(recipe, tmp_path / "run")
    export_model(model, tmp_path / "back", to="huggingface")
    theirs, tokenizer = opened(tmp_path / "back", "LongformerForSequenceClassification")
    with torch.no_grad():
        expected = theirs(**tokenizer("the quick brown fox", "it sleeps", return_tensors="pt")).logits[0].numpy()
    found = headwise.load(model, engine="torch").logits([("the quick brown fox", "it sleeps")])[0]
    assert np.allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_gaps_have_the_logits_of_transformers(tmp_path: Path, name: str) -> None:
    kind = f"{name}ForMaskedLM"
    publish_long(tmp_path / "hub", kind)
    import_model(tmp_path / "hub", tmp_path / "ours")
    filler = headwise.load(tmp_path / "ours", engine="torch")
    order = torch.tensor(open_numbering(tmp_path / "ours"))
    for text in TEXTS:
        gap = text.replace("quick", MASKS[name], 1)
        model, tokenizer = opened(tmp_path / "hub", kind)
        inputs = inputs_of(name, tokenizer, gap)
        with torch.no_grad():
            expected = model(**inputs).logits[0][:, order]
            ids = torch.tensor([[2, *filler.encode(gap)[1:-1], 3]])
            assert order[ids[0]].tolist() == inputs["input_ids"][0].tolist()
            found = filler.network(ids)[0]
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
        assert len(filler.fill([gap], top=3)[0].gaps[0]) == 3


def open_numbering(folder: Path) -> list[int]:
    """Published ids in our order."""
    from headwise.bundle.directory import open_bundle
    from headwise.text.published import Origin

    (origin,) = open_bundle(folder).card["origin"]["tokenizers"]
    return Origin(**origin).numbering().order


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["Model", "ForMaskedLM", "ForSequenceClassification"])
def test_an_imported_model_is_exported_as_it_was_published(tmp_path: Path, name: str, kind: str) -> None:
    publish_long(tmp_path / "hub", f"{name}{kind}")
    import_model(tmp_path / "hub", tmp_path / "ours")
    export_model(tmp_path / "ours", tmp_path / "back", to="huggingface")
    before, after = (load_file(tmp_path / folder / "model.safetensors") for folder in ("hub", "back"))
    assert before.keys() == after.keys()
    for weight in before:
        unused = slice(2, None) if "position_embeddings" in weight and name == "Longformer" else slice(None)
        if not weight.startswith("bert.pooler"):  # which these classes do not use
            assert torch.equal(before[weight][unused], after[weight][unused]), weight
    (one, before_ids), (other, after_ids) = (opened(tmp_path / folder, f"{name}{kind}") for folder in ("hub", "back"))
    inputs = inputs_of(name, before_ids, TEXTS[-1])
    assert all(before_ids(text)["input_ids"] == after_ids(text)["input_ids"] for text in TEXTS)
    with torch.no_grad():
        torch.testing.assert_close(other(**inputs)[0], one(**inputs)[0], atol=1e-5, rtol=1e-5)
    import_model(tmp_path / "back", tmp_path / "again")
    for file in ("model.safetensors", "tokenizer.json"):
        assert (tmp_path / "ours" / file).read_bytes() == (tmp_path / "again" / file).read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_a_model_of_our_own_travels_there_and_back(tmp_path: Path, name: str) -> None:
    from headwise.bundle.assets import Assets
    from headwise.config import schema
    from headwise.text.tokenizer import Tokenizer, TokenizerPair

    tokenizer = Tokenizer.train(TEXTS, schema.Tokenizer(kind="word", size=60))
    sizes: dict[str, Any] = {"model_dim": 32, "num_heads": 4, "layers": 2, "ff_dim": 48, "max_length": 64}
    own: dict[str, Any] = {
        "Longformer": {"window": 8},
        "BigBird": {"block": 4, "random": 2, "draw": False, "pooler_activation": "gelu-tanh"},
    }[name]
    torch.manual_seed(3)
    build = {"Longformer": Longformer, "BigBird": BigBird}[name]
    ours = build(vocab=tokenizer.size, classes=3, pooling="first", **sizes, **own).eval()
    assets = Assets(TokenizerPair.one(tokenizer), ("a", "b", "c"))
    save_model(tmp_path / "own", ours, assets, family=name.lower(), task="classify")
    export_model(tmp_path / "own", tmp_path / "hub", to="huggingface")
    text = TEXTS[2]
    theirs, names = opened(tmp_path / "hub", f"{name}ForSequenceClassification")
    with torch.no_grad():
        expected = theirs(**names(text, return_tensors="pt", return_token_type_ids=False)).logits[0].numpy()
    found = headwise.load(tmp_path / "own", engine="torch").logits([text])[0]
    assert np.allclose(found, expected, atol=1e-4)
    import_model(tmp_path / "hub", tmp_path / "again")
    _, back, _ = open_model(tmp_path / "again")
    before, after = ours.state_dict(), back.state_dict()
    assert all(torch.equal(before[weight], after[weight]) for weight in before)


def test_random_blocks_that_are_drawn_cannot_be_exported(tmp_path: Path) -> None:
    from fixtures_models import word_tokenizers

    pair = word_tokenizers()
    model = BigBird(vocab=pair.source.size, model_dim=16, num_heads=2, layers=1, ff_dim=16, max_length=32, block=4)
    save_model(tmp_path / "own", model, pair, family="bigbird", task="fill")
    with pytest.raises(UsageError, match=r"draws no random blocks in evaluation \(draw = false\)"):
        export_model(tmp_path / "own", tmp_path / "hub", to="huggingface")
    assert not (tmp_path / "hub").exists()
