from __future__ import annotations

from pathlib import Path

import pytest
import torch

from headwise.config.families import find_family
from headwise.errors import HeadwiseError
from headwise.interop.huggingface.layout import Key, layout_for, layout_of, layouts
from headwise.interop.huggingface.published import Config


def test_every_transform_is_undone_on_the_way_back() -> None:
    order, width = torch.tensor([3, 0, 1, 2]), torch.tensor([2, 0, 3, 1])
    cases = {
        Key("a", ("x",)): [(5, 4)],
        Key("a", ("x",), transposed=True): [(5, 4)],
        Key("a", ("x", "y", "z"), width=(1,)): [(4, 4)] * 3,
        Key("a", ("x",), vocabulary=True, width=(1,)): [(4, 4)],
        Key("a", ("x",), vocabulary=True, flattened=True): [(1, 4)],
    }
    for key, shapes in cases.items():
        theirs = [torch.randn(shape) for shape in shapes]
        ours = key.to_ours(theirs, order, width)
        assert tuple(ours.shape) == key.shape(shapes)
        back = key.to_theirs(ours, order, width)
        assert list(back) == list(key.theirs)
        assert all(torch.equal(one, other) for one, other in zip(theirs, back.values(), strict=True))


def test_parts_that_cannot_stand_below_each_other_have_no_shape() -> None:
    assert Key("a", ("x", "y")).shape([(2, 3), (2, 4)]) == ()
    assert Key("a", ("x",)).shape([()]) == ()


def test_every_layout_names_a_family_and_a_task_of_ours() -> None:
    for kind, layout in layouts().items():
        family = find_family(layout.family)
        assert family is not None, kind
        assert layout.task in family.tasks
    assert layout_for("nothing") is None


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"model_type": "mamba"}, "the architecture 'mamba' is unknown; Headwise imports"),
        ({}, "the architecture None is unknown"),
        ({"model_type": "gpt2", "architectures": ["GPT2ForSequenceClassification"]}, "only GPT2LMHeadModel"),
        ({"format": 1, "family": "lm"}, "is a Headwise model already"),
    ],
)
def test_what_cannot_be_imported_is_named(values: dict[str, object], words: str) -> None:
    with pytest.raises(HeadwiseError, match=words):
        layout_of(Config(Path("model/config.json"), values))
