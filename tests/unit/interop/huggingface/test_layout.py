from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headwise.config.families import find_family
from headwise.config.families.lm import LanguageModelSettings
from headwise.errors import HeadwiseError, ModelError, UsageError
from headwise.interop.huggingface.layout import layout_for, layout_of, layouts
from headwise.interop.huggingface.published import Config


def test_every_layout_names_a_family_and_a_task_of_ours() -> None:
    for kind, found in layouts().items():
        assert len({layout.class_name for layout in found}) == len(found), kind
        for layout in found:
            family = find_family(layout.family)
            assert family is not None, kind
            assert layout.task in family.tasks


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


def test_names_of_old_files_become_those_of_today() -> None:
    layout = replace(layouts()["gpt2"][0], prefix="body.", renamed=((r"\.gamma$", ".weight"), (r"\.beta$", ".bias")))
    wanted = {"body.norm.weight", "body.norm.bias", "head.weight"}
    found = layout.today(["norm.gamma", "body.norm.beta", "head.weight", "other"], wanted)
    assert found == {
        "body.norm.weight": "norm.gamma", "body.norm.bias": "body.norm.beta", "head.weight": "head.weight",
        "other": "other",
    }  # fmt: skip
    with pytest.raises(ModelError, match=r"norm\.gamma and body\.norm\.weight are the same one"):
        layout.today(["norm.gamma", "body.norm.weight"], wanted)


def test_a_model_is_exported_in_the_layout_that_fits() -> None:
    settings = LanguageModelSettings.of(find_family("lm").presets["gpt2"]).model_dump(mode="json")  # type: ignore[union-attr]
    assert layout_for("lm", "generate", {**settings, "vocab": 9})[0] == "gpt2"
    with pytest.raises(UsageError, match="norm = 'pre'"):
        layout_for("lm", "generate", {**settings, "vocab": 9, "norm": "post"})
    with pytest.raises(UsageError, match="the Hub's layout of family 'nothing', task 'generate' is not known"):
        layout_for("nothing", "generate", settings)
