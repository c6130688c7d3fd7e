from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headwise.config.families.longformer import FAMILY
from headwise.errors import ModelError, UsageError
from headwise.interop.huggingface.families.longformer import (
    LONGFORMER,
    read_config,
    read_parts,
    skipped,
    special_config,
    write_config,
)
from headwise.interop.huggingface.published import Config
from headwise.text.published import Numbering

# Those of allenai/longformer-base-4096.
BASE = {
    "attention_window": [512] * 12, "max_position_embeddings": 4098, "pad_token_id": 1, "type_vocab_size": 1,
    "layer_norm_eps": 1e-5,
}  # fmt: skip


def config(**values: Any) -> Config:
    return Config(Path("config.json"), {**BASE, **values})


def test_positions_begin_after_the_number_of_the_padding() -> None:
    read = read_config(config())
    assert (read["max_length"], read["window"], read["layers"]) == (4096, 512, 12)
    settings = {**FAMILY.settings.model_validate(read).model_dump(), "vocab": 9, "classes": None}
    numbering = Numbering.of(9, {0: 1, 1: 3, 2: 0, 3: 2})
    assert skipped(numbering) == 2
    written = {**special_config(settings, numbering), **LONGFORMER.checked_config(settings)}
    assert {name: written[name] for name in BASE} == BASE


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"attention_window": [512, 256]}, "the same in all layers"),
        ({"attention_window": 7}, "an even number"),
        ({"attention_window": "wide"}, "an even number"),
        ({"pad_token_id": 5000}, "pad_token_id must be a token before all positions"),
        ({"pad_token_id": None}, "pad_token_id must be"),
        ({"hidden_act": "relu"}, "hidden_act = 'relu' is not supported"),
    ],
)
def test_what_is_not_supported_is_one_line(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        read_config(config(**values))


@pytest.mark.parametrize("changes", [{"global_first": False}, {"activation": "relu"}])
def test_what_the_hub_does_not_have_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="in the Hub's layout Longformer"):
        write_config({**FAMILY.settings().model_dump(), **changes})


def test_files_of_roberta_get_its_special_tokens(tmp_path: Path) -> None:
    names = {name: number for number, name in enumerate(["<s>", "<pad>", "</s>", "<unk>", "a", "b", "ab"])}
    (tmp_path / "vocab.json").write_text(json.dumps(names))
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b\n")
    step = read_parts(tmp_path)["post_processor"]
    marks = [piece.get("SpecialToken", {}).get("id", "text") for piece in step["pair"]]
    assert marks == ["<s>", "text", "</s>", "</s>", "text", "</s>"]
    del names["<s>"]
    (tmp_path / "vocab.json").write_text(json.dumps(names))
    assert read_parts(tmp_path)["post_processor"] is None
