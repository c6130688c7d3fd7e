from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ctranslate2.specs import model_spec

from headwise.errors import ModelError
from headwise.interop.ctranslate2.directory import Directory, Rows, is_directory, open_directory, read_weights
from headwise.interop.keys import Key, Orders


def written(folder: Path, **variables: Any) -> Directory:
    class Given(model_spec.ModelSpec):
        name = "ToySpec"

        def variables(self, prefix: str = "", ordered: bool = False) -> Any:
            found = {key.replace("__", "/"): model_spec.NumpyVariable(np.asarray(v)) for key, v in variables.items()}
            return sorted(found.items())

    Given()._serialize(str(folder / "model.bin"))
    return open_directory(folder)


def test_settings_are_of_a_stack_or_of_an_old_file_as_a_whole(tmp_path: Path) -> None:
    assert not is_directory(tmp_path)
    numbers = {"encoder__num_heads": np.int16(8), "pre_norm": np.int8(0), "activation": np.int8(2)}
    directory = written(tmp_path, **numbers)
    assert is_directory(tmp_path)
    assert directory.setting("encoder", "num_heads", 1) == 8
    assert directory.setting("encoder", "pre_norm", 1) == 0
    assert directory.setting("encoder", "other", 5) == 5
    assert directory.activation("encoder") == "silu"
    directory.must("pre_norm", 0)
    with pytest.raises(ModelError, match="pre_norm = 0 is not supported, only 1"):
        directory.must("pre_norm", 1)
    with pytest.raises(ModelError, match=r"activation function \(number 4\) is not supported"):
        written(tmp_path, activation=np.int8(4)).activation("decoder")


def test_layers_are_counted_and_none_may_be_missing(tmp_path: Path) -> None:
    one = np.zeros(2, dtype=np.float32)
    assert written(tmp_path, encoder__layer_0__w=one, encoder__layer_1__w=one, encoder__layer_norm__g=one).layers(
        "encoder"
    ) == 2  # fmt: skip
    for names in (["encoder__layer_1__w"], ["decoder__layer_0__w"], ["encoder__layer_x__w"]):
        with pytest.raises(ModelError, match="lacks layers of the encoder"):
            written(tmp_path, **dict.fromkeys(names, one)).layers("encoder")


def test_a_vocabulary_is_a_list_in_json_or_lines(tmp_path: Path) -> None:
    directory = written(tmp_path)
    with pytest.raises(ModelError, match=r"has no source_vocabulary\.json"):
        directory.vocabulary("source_vocabulary", "shared_vocabulary")
    (tmp_path / "shared_vocabulary.txt").write_text("<unk>\na\n \n")
    assert directory.vocabulary("source_vocabulary", "shared_vocabulary") == ["<unk>", "a", " "]
    (tmp_path / "source_vocabulary.json").write_text(json.dumps(["<unk>", "b\nc"]))
    assert directory.vocabulary("source_vocabulary", "shared_vocabulary") == ["<unk>", "b\nc"]
    for wrong, words in (
        ("{}", "is not a list of tokens"),
        ("[1]", "is not a list of tokens"),
        ("[", "cannot be read"),
    ):
        (tmp_path / "source_vocabulary.json").write_text(wrong)
        with pytest.raises(ModelError, match=words):
            directory.vocabulary("source_vocabulary")
    (tmp_path / "source_vocabulary.json").write_bytes(b"\xff")
    with pytest.raises(ModelError, match="cannot be read"):
        directory.vocabulary("source_vocabulary")


def test_rows_are_added_for_tokens_that_a_vocabulary_lacks() -> None:
    rows = Rows((1, None), -9.0)
    table = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert rows.appended(table).tolist() == [[1, 2], [3, 4], [3, 4], [0, 0]]
    assert rows.appended(table[0]).tolist() == [1, 2, -9, -9]
    assert Rows().appended(table) is table


def test_every_tensor_must_be_known_and_of_its_size(tmp_path: Path) -> None:
    sizes = {"vocab": 5, "model_dim": 2, "num_heads": 1, "layers": 1, "ff_dim": 3}
    orders = Orders({"target": torch.arange(5)})
    table = [Key("embedding.weight", ("emb/weight",), vocabulary="target")]
    matrix = np.ones((5, 2), dtype=np.float32)
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "lacks emb/weight"),
        ({"emb__weight": matrix, "more": matrix}, "has more, which Headwise does not know"),
        ({"emb__weight": matrix[:4]}, "has fewer rows than the vocabulary"),
        ({"emb__weight": matrix[:, :1]}, r"has the shape \[5, 1\], not \(5, 2\)"),
        ({"emb__weight": matrix}, "there is nothing for "),
    ]
    for variables, words in cases:
        with pytest.raises(ModelError, match=words):
            read_weights(written(tmp_path, **variables), "lm", sizes, table, orders)
    with pytest.raises(ModelError, match=r"emb/weight has the shape \[3\]"):
        written(tmp_path, emb__weight=np.ones(3, dtype=np.float32)).matrix("emb/weight")
