"""An encoder must learn to fill gaps, to tell partners from strangers, and to pass on what it has learned."""

from __future__ import annotations

import tomllib
from pathlib import Path

import tomli_w
from fixtures_encoders import train_recipe
from small_tables import labelled_texts, write_table_recipe
from small_texts import lines_of_order, related_pairs

import headwise


def test_learns_to_fill_gaps_to_95_percent(filler_model: Path) -> None:
    filler = headwise.load(filler_model)
    lines = lines_of_order(200, 9)
    gapped = [[*line.split()[:3], "[MASK]", *line.split()[4:]] for line in lines]
    filled = filler.fill([" ".join(words) for words in gapped], top=1)
    assert sum(one.text == line for one, line in zip(filled, lines, strict=True)) >= 190


def test_learns_to_fill_spans_to_80_percent(span_model: Path) -> None:
    filler = headwise.load(span_model)
    lines = lines_of_order(200, 9)
    hidden = [1 if len(line.split()) == 5 else 2 for line in lines]  # as many as in training
    gapped = [[line.split()[0], "[MASK]", *line.split()[1 + k :]] for line, k in zip(lines, hidden, strict=True)]
    filled = filler.fill([" ".join(words) for words in gapped], top=1)
    assert sum(one.text == line for one, line in zip(filled, lines, strict=True)) >= 160


def test_learns_vectors_by_which_partners_find_each_other(embedder_model: Path) -> None:
    embedder = headwise.load(embedder_model)
    pairs = related_pairs(100, 9)
    texts, partners = (embedder.embed([pair[side] for pair in pairs]) for side in (0, 1))
    nearest = (texts @ partners.T).argmax(axis=1)
    assert sum(pairs[found][1] == pair[1] for found, pair in zip(nearest, pairs, strict=True)) >= 90


def test_a_classifier_starts_from_what_a_filler_has_learned(filler_model: Path, tmp_path: Path) -> None:
    import torch

    from headwise.bundle.directory import open_bundle
    from headwise.bundle.weights import load_model

    recipe = write_table_recipe(tmp_path, training={"steps": 1, "learning_rate": 1e-9})
    values = tomllib.loads(recipe.read_text()) | {"model": {"family": "bert", "from": str(filler_model)}}
    recipe.write_text(tomli_w.dumps(values))
    model = train_recipe(recipe, tmp_path / "run")
    before, after = (load_model(open_bundle(path)) for path in (filler_model, model))
    assert torch.allclose(before.embedding.weight, after.embedding.weight, atol=1e-6)  # type: ignore[union-attr, arg-type]
    ids = torch.tensor([[2, 5, 6, 7, 3]])
    assert torch.allclose(before.encode(ids), after.encode(ids), atol=1e-4)  # type: ignore[operator]
    answers = headwise.load(model, engine="torch").classify([row[0] for row in labelled_texts(5, 1)])
    assert len(answers) == 5
