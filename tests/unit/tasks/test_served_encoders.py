from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headwise.bundle.directory import open_bundle
from headwise.errors import UsageError
from headwise.tasks import find_task
from headwise.tasks.served_encoders import ServedClassifier, ServedEmbedder, ServedFiller
from headwise.workflows.load import load

TEXTS = ["red dog blue", "one two", "cat " * 40]  # the last is longer than the models read


def serve(model: Path, engine: str = "auto") -> ServedClassifier | ServedEmbedder | ServedFiller:
    bundle = open_bundle(model)
    served = find_task(bundle.task_name).serve("name", bundle, engine, "int8")
    served.probe()
    return served  # type: ignore[return-value]


def test_a_classifier_is_served_as_it_is_used(classifier_model: Path) -> None:
    served = serve(classifier_model)
    assert isinstance(served, ServedClassifier)
    assert served.facts.reads == "text"
    encoded = served.encode(TEXTS)
    assert [served.size(one) for one in encoded] == [5, 4, 24]
    assert served.classify(encoded) == load(classifier_model).classify(TEXTS)
    with pytest.raises(UsageError, match="reads text, not files"):
        served.read_file(b"")
    assert "<html" in served.look("red dog", "colours")
    with pytest.raises(UsageError, match="no label 'plants'"):
        served.look("red dog", "plants")


def test_a_look_at_a_pair_has_a_tab_between_its_texts(pair_model: Path) -> None:
    served = serve(pair_model)
    assert isinstance(served, ServedClassifier)
    assert served.facts.reads == "pair"
    found = served.explain("red dog\tblue", "colours")
    assert [word.strip() for word, _ in found["words"]] == ["red", "dog", "blue"]
    with pytest.raises(UsageError, match="put a tab between the two"):
        served.look("red dog", None)
    opened = load(pair_model)
    assert opened.classify([("red dog", "blue")])[0].label == "colours"
    with pytest.raises(UsageError, match="reads pairs of texts"):
        opened.classify(["red dog"])


def test_an_embedder_is_served_as_it_is_used(embedder_model: Path) -> None:
    served = serve(embedder_model, "torch")
    assert isinstance(served, ServedEmbedder)
    np.testing.assert_allclose(
        served.embed(served.encode(TEXTS)), load(embedder_model, engine="torch").embed(TEXTS), atol=1e-6
    )
    with pytest.raises(UsageError, match="no target"):
        served.look("red", "blue")


def test_a_filler_is_served_as_it_is_used(filler_model: Path) -> None:
    served = serve(filler_model)
    assert isinstance(served, ServedFiller)
    assert served.length("red [MASK] green") == 5
    assert served.fill(["red [MASK] green"], 2) == load(filler_model).fill(["red [MASK] green"], 2)
    assert "<html" in served.look("red [MASK]", None)
    for text, part in (("red", "no gap"), ("[MASK] " * 40, "reads at most")):
        with pytest.raises(UsageError, match=part):
            served.length(text)
