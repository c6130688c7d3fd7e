"""The card of a model has what is known of it, whatever its directory says."""

from __future__ import annotations

import json
from pathlib import Path

from headwise.bundle.directory import Bundle, open_bundle
from headwise.serving.model_cards import ModelCard, card_of
from headwise.tasks.interface import Facts


def test_a_card_has_data_licence_and_scores_with_their_signatures(word_model: Path) -> None:
    score = {"test": "flickr", "metric": "BLEU", "value": 38.5, "signature": "nrefs:1", "engine": "int8"}
    known = open_bundle(word_model)
    card = {
        "about": {"licence": "CC BY 4.0", "trained_on": "captions", "good_for": "captions"},
        "data": {"sentences": 29000},
        "validation": {"step": 100, "bleu": 40.5, "chrf": float("nan"), "best": True},
        "scores": [score],
        "headwise": "0.1.0",
    }
    bundle = Bundle(word_model, known.family, known.architecture, ("en", "de"), card=card)
    found = card_of(Facts.of("words", bundle, "torch"))
    assert (found["licence"], found["trained_on"], found["limits"]) == ("CC BY 4.0", "captions", None)
    assert (found["sentences"], found["validation"], found["tests"]) == (29000, {"bleu": 40.5}, [score])
    assert found["languages"] == ["en", "de"]
    assert ModelCard.model_validate(json.loads(json.dumps(found, allow_nan=False))).tests[0].signature == "nrefs:1"


def test_a_card_of_which_little_is_known_is_a_card_too() -> None:
    found = card_of(Facts("mirror", "toy", (), 0, "none", None, None, None, None))
    assert ModelCard.model_validate(found).family == ""
