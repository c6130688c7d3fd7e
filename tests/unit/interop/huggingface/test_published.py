from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from headwise.errors import ModelError
from headwise.interop.huggingface.published import Config, licence_of, open_published


def test_values_of_a_config_are_checked_one_by_one() -> None:
    config = Config(Path("config.json"), {"n": 3, "zero": 0, "rate": 0.1, "kind": "a", "eos": [7, 8], "yes": True})
    assert (config.number("n"), config.number("none", 4), config.fraction("rate", 0.0)) == (3, 4, 0.1)
    assert (config.choice("kind", {"a": "A"}, "a"), config.token("eos", 9), config.token("eos", 7)) == ("A", 7, None)
    config.must("yes", True)
    config.must("none", 1)
    for call in (
        lambda: config.number("zero"), lambda: config.number("yes"), lambda: config.fraction("n", 0.0),
        lambda: config.choice("kind", {"b": "B"}, "b"), lambda: config.must("yes", False), lambda: config.number("no"),
    ):  # fmt: skip
        with pytest.raises(ModelError, match=r"config\.json: "):
            call()


def test_classes_are_named_in_the_order_of_the_outputs() -> None:
    file = Path("config.json")
    assert Config(file, {"id2label": {"1": "b", "0": "a"}}).labels() == ("a", "b")
    assert Config(file, {"id2label": {"0": "a", "1": "a", "2": "b"}}).labels() == ("a", "a (1)", "b")
    assert Config(file, {}).labels() == ("LABEL_0", "LABEL_1")
    for scores in ({"num_labels": 1}, {"id2label": {"0": "LABEL_0"}}):
        with pytest.raises(ModelError, match=r"config\.json: the only label is 'LABEL_0'"):
            Config(file, scores).labels()
    with pytest.raises(ModelError, match="problem_type = 'multi_label_classification' is not supported"):
        Config(file, {"problem_type": "multi_label_classification"}).labels()
    assert Config(file, {"num_labels": 3}).labels() == ("LABEL_0", "LABEL_1", "LABEL_2")
    for wrong in ([], {}, {"0": "a", "2": "b"}, {"0": "a (2)", "1": "a", "2": "a"}, {"0": 1}, {"0": ""}):
        with pytest.raises(ModelError, match=r"config\.json: id2label must"):
            Config(file, {"id2label": wrong}).labels()


def test_weights_in_several_files_are_one_model(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    save_file({"a": torch.ones(2, dtype=torch.bfloat16)}, tmp_path / "one.safetensors")
    save_file({"b": torch.full((3,), 2.0, dtype=torch.float16)}, tmp_path / "two.safetensors")
    index = {"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    published = open_published(tmp_path)
    assert [x.tolist() for x in published.read(["b", "a"])] == [[2.0] * 3, [1.0] * 2]
    assert {x.dtype for x in published.read(["a", "b"])} == {torch.float32}
    (tmp_path / "two.safetensors").unlink()
    with pytest.raises(ModelError, match=r"lacks two\.safetensors"):
        open_published(tmp_path)
    index["weight_map"]["b"] = "../two.safetensors"
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ModelError, match="not a safetensors file beside it"):
        open_published(tmp_path)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "weights.pt", "last.ckpt", "model.pth"])
def test_a_pickle_is_never_opened(tmp_path: Path, name: str) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / name).write_bytes(b"cos\nsystem\n(S'touch /tmp/owned'\ntR.")
    with pytest.raises(ModelError, match=f"{name} is a pickle, which can run code, so it is not opened; convert it"):
        open_published(tmp_path)


def test_what_is_missing_or_cut_off_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is not a directory"):
        open_published(tmp_path / "nowhere")
    with pytest.raises(ModelError, match=r"has no config\.json"):
        open_published(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError, match=r"has no model\.safetensors"):
        open_published(tmp_path)
    file = tmp_path / "model.safetensors"
    save_file({"a": torch.ones(100)}, file)
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(ModelError, match="is cut off or damaged"):
        open_published(tmp_path)
    file.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    with pytest.raises(ModelError, match="is a pointer of Git LFS, not the weights; fetch them with `git lfs pull`"):
        open_published(tmp_path)
    save_file({"a": torch.ones(4, dtype=torch.int8)}, file)
    with pytest.raises(ModelError, match="a is stored as I8"):
        open_published(tmp_path)


def test_the_licence_is_what_the_readme_or_the_config_says(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"license": "mit"}')
    assert licence_of(tmp_path) == "mit"
    (tmp_path / "README.md").write_text("---\nlanguage: en\nlicense: apache-2.0\n---\n# A model\nlicense: none\n")
    assert licence_of(tmp_path) == "apache-2.0"
