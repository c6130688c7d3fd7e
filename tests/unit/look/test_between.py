from __future__ import annotations

from pathlib import Path

import pytest

import headwise
from headwise.errors import UsageError
from headwise.look.between import rank_heads


def test_heads_are_ranked_by_the_weight_between_two_words(filler_model: Path) -> None:
    seen = headwise.load(filler_model).look("dog cat [MASK] bird")
    weights = seen.attention["encoder"][0]
    found = rank_heads(seen, "cat", "bird")
    assert [(one.layer, one.weight) for one in found] == [
        (1, pytest.approx(weight)) for weight in sorted((float(head[2, 4]) for head in weights), reverse=True)
    ]
    with pytest.raises(UsageError, match="no word 'fox' in the text"):
        rank_heads(seen, "fox", "cat")
    with pytest.raises(UsageError) as long:
        rank_heads(headwise.load(filler_model).look("dog " * 20 + "[MASK]"), "fox" * 90, "cat")
    assert len(str(long.value)) < 400


def test_sentence_vectors_can_be_looked_at_but_have_no_label(embedder_model: Path) -> None:
    seen = headwise.load(embedder_model, engine="torch").look("dog cat")
    assert seen.attention["encoder"].shape[-2:] == (4, 4)
    with pytest.raises(UsageError, match="saliency needs a label"):
        seen.saliency  # noqa: B018


def test_the_real_minilm_has_heads_in_which_it_looks_at_the_animal(tmp_path: Path, minilm: Path) -> None:
    from headwise.workflows.import_model import import_model

    import_model(minilm, tmp_path / "minilm")
    text = "The animal didn't cross the street because it was too tired."
    seen = headwise.load(tmp_path / "minilm", engine="torch").look(text)
    animal = rank_heads(seen, "it", "animal")
    street = {(one.layer, one.head): one.weight for one in rank_heads(seen, "it", "street")}
    assert len(animal) == 72
    best = animal[0]
    print(best, street[best.layer, best.head])
    assert best.weight > 2 * street[best.layer, best.head]
