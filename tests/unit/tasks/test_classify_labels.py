"""The numbers of idx files mean the names that the recipe gave them, whatever the order of the model's labels."""

from __future__ import annotations

from pathlib import Path

from headwise.bundle.directory import Bundle
from headwise.tasks.classify import numbered_labels


def bundle(card: dict[str, object]) -> Bundle:
    return Bundle(Path("nowhere"), "vit", {}, card=card)


def test_numbers_are_named_in_the_order_of_the_recipe() -> None:
    named = bundle({"recipe": {"data": {"labels": ["shirt", "bag"]}}})
    assert numbered_labels(named, ("bag", "shirt")) == ("shirt", "bag")


def test_without_names_the_order_is_that_of_the_model() -> None:
    for card in ({}, {"recipe": {"data": {"labels": ["coat"]}}}, {"recipe": "damaged"}):
        assert numbered_labels(bundle(card), ("0", "1")) == ("0", "1")
