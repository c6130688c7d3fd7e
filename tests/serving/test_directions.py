"""One model of several directions is served as several translators, which share its weights."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import serving
from small_mixtures import texts, write_mixture_recipe, write_task

import headwise
from headwise.config.recipe import load_recipe
from headwise.workflows.train import train

PAIRS = (("en", "fr"), ("fr", "en"))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Reverses words, which is called English to French or French to English; a few updates tell the prefixes apart."""
    folder = tmp_path_factory.mktemp("directions")
    parts = [
        {
            "prefix": f"to {pair[1]}: ",
            "languages": list(pair),
            **write_task(folder, "reverse", pair[1], texts(300, seed)),
        }
        for seed, pair in enumerate(PAIRS)
    ]
    return train(*load_recipe(write_mixture_recipe(folder, data={"mixture": parts})), folder / "run").model


def test_every_direction_of_a_model_is_served(model: Path) -> None:
    lines, answers = texts(20, 7), []
    with serving("--model", f"both={model}") as running:
        listed = running.ask("GET", "/models").json["models"]
        assert [one["name"] for one in listed] == ["both:en-fr", "both:fr-en"]
        for source, target in PAIRS:
            expected = headwise.load(model, languages=(source, target)).translate(lines, split_sentences=False)
            for name in (None, f"both:{source}-{target}"):
                body = {"q": lines, "source": source, "target": target, **({"model": name} if name else {})}
                answer = running.ask("POST", "/translate", body)
                assert answer.json["translatedText"] == [one.text for one in expected]
            answers.append(answer.json["translatedText"])
        assert answers[0] != answers[1], "the prefix tells the model which direction is meant"
        wrong = running.ask("POST", "/translate", {"q": lines, "source": "fr", "target": "en", "model": "both:en-fr"})
        assert (wrong.status, "no such pair of languages" in wrong.json["error"]) == (400, True)
