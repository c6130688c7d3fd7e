"""A model in Marian's own files computes what the same model computes in CTranslate2 and in the Hub's layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
import torch
from fixtures_published import TEXT, as_marian_files, publish_marian

import headwise
from headwise.bundle.directory import open_bundle
from headwise.bundle.weights import open_model
from headwise.decoding.torch_engine import TorchEngine
from headwise.workflows.import_model import import_model

pytest.importorskip("sentencepiece", reason="sentencepiece is not installed: pip install -e '.[dev]'")


@pytest.mark.parametrize(
    "changes", [{}, {"activation_function": "relu", "encoder_layers": 1}, {"separate": True}], ids=str
)
def test_it_is_the_model_of_the_hub_and_of_ctranslate2(tmp_path: Path, changes: dict[str, Any]) -> None:
    publish_marian(tmp_path / "hub", **changes)
    as_marian_files(tmp_path / "hub", tmp_path / "files")
    import_model(tmp_path / "hub", tmp_path / "one")
    made = import_model(tmp_path / "files", tmp_path / "other")
    assert open_bundle(made.path).card["origin"]["format"] == "marian"
    (_, one, tokens), (_, other, pair) = open_model(tmp_path / "one"), open_model(tmp_path / "other")
    assert pair == tokens
    weights, found = dict(one.named_parameters()), dict(other.named_parameters())
    for name in weights:
        rows = torch.arange(len(weights[name]))
        if name.endswith("embedding.bias"):  # but for the token that decoding starts with
            rows = rows[rows != 1]
        assert torch.equal(weights[name][rows], found[name][rows]), name
    texts = [*TEXT.split("\n")[:2], "again and again", "12 birds"]
    both = [headwise.load(tmp_path / name, engine="torch") for name in ("one", "other")]
    answers = [[t.text for t in model.translate(texts, beam=4, max_extra=3)] for model in both]
    assert answers[0] == answers[1]
    # CTranslate2's own converter reads the same files.
    vocabularies = sorted(str(file) for file in (tmp_path / "files").glob("*.vocab.yml"))
    converter = ctranslate2.converters.MarianConverter(str(tmp_path / "files" / "model.npz"), vocabularies)
    converter.convert(str(tmp_path / "converted"))
    engine = ctranslate2.Translator(str(tmp_path / "converted"), compute_type="float32")
    sources, targets = ([side.encode(text) for text in texts] for side in (pair.source, pair.target))
    targets = [target[:8] for target in targets]
    expected = engine.score_batch(
        [pair.source.pieces(source) for source in sources], [pair.target.pieces(target) for target in targets]
    )
    for wanted, scores in zip(expected, TorchEngine(other).score(sources, targets), strict=True):
        np.testing.assert_allclose(scores, wanted.log_probs, atol=1e-4, rtol=1e-4)
