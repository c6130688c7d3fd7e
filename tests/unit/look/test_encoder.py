from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import headwise
from headwise.errors import UsageError
from headwise.look.encoder import look_at_label


def test_attention_and_the_tokens_that_speak_for_a_label(classifier_model: Path, tmp_path: Path) -> None:
    classifier = headwise.load(classifier_model, engine="torch")
    seen = classifier.look("dog cat red")
    assert seen.attention["encoder"].shape == (1, 2, 5, 5)
    assert np.allclose(seen.attention["encoder"].sum(axis=-1), 1, atol=1e-5)
    assert seen.saliency.shape == (1, 5)
    assert seen.steps.chances[0] == pytest.approx(classifier.classify("dog cat red").probability)  # calibrated too
    for name in ("a.html", "a.svg"):
        seen.save(tmp_path / name)
    seen.save(tmp_path / "words.svg", "saliency")
    assert all(path.stat().st_size > 500 for path in tmp_path.iterdir())
    with pytest.raises(UsageError, match="has no label 'plants'"):
        classifier.look("dog", "plants")


def test_saliency_is_the_slope_of_the_log_odds(classifier_model: Path) -> None:
    classifier = headwise.load(classifier_model, engine="torch")
    network, tokenizer = classifier.engine.network, classifier.assets.tokenizers.source
    ids = [2, *tokenizer.encode("dog red one"), 3]
    found = look_at_label(network, tokenizer, ids, "animals", 0, 0.9).saliency[0]
    for place in range(len(ids)):
        odds = []
        for change in (-1e-2, 1e-2):
            scale = torch.ones(1, len(ids), 1)
            scale[0, place] += change
            hook = network.positions.register_forward_pre_hook(lambda _, given, by=scale: (given[0] * by, *given[1:]))
            with torch.no_grad():
                logits = network(torch.tensor([ids]))[0]
            hook.remove()
            odds.append(float(logits[0] - logits[1:].logsumexp(0)))
        assert found[place] == pytest.approx((odds[1] - odds[0]) / 2e-2, abs=0.02)
