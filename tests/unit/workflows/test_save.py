"""A network becomes a model directory, and the page on Python runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import headwise as hw
from headwise.bundle.directory import open_bundle
from headwise.errors import HeadwiseError
from headwise.workflows.save import save

ROOT = Path(__file__).parents[3]


@pytest.fixture
def tokenizer() -> hw.Tokenizer:
    return hw.Tokenizer.train(["the red dog", "a blue cat"], kind="char")


def test_a_saved_network_is_loaded_with_the_same_weights(tmp_path: Path, tokenizer: hw.Tokenizer) -> None:
    model = hw.LanguageModel(vocab=tokenizer.size, model_dim=16, num_heads=2, layers=1, ff_dim=16, max_length=32).eval()
    assert save(model, tokenizer, tmp_path / "lm", languages="en") == tmp_path / "lm"
    assert open_bundle(tmp_path / "lm").languages == ("en",)
    loaded = hw.load(tmp_path / "lm")
    for name, value in model.state_dict().items():
        assert torch.equal(value, loaded.model.state_dict()[name])


def test_two_tokenizers_are_those_of_source_and_target(tmp_path: Path, tokenizer: hw.Tokenizer) -> None:
    other = hw.Tokenizer.train(["ein Hund"], kind="char")
    model = hw.Transformer(
        source_vocab=tokenizer.size, target_vocab=other.size, model_dim=16, num_heads=2, encoder_layers=1,
        decoder_layers=1, ff_dim=16, tie="none",
    )  # fmt: skip
    save(model, (tokenizer, other), tmp_path / "mt", languages=["en", "de"])
    assert hw.load(tmp_path / "mt", engine="torch").tokenizers.target.size == other.size


def test_a_module_of_no_family_is_refused_with_the_remedy(tmp_path: Path, tokenizer: hw.Tokenizer) -> None:
    with pytest.raises(HeadwiseError, match=r"Linear is not the network of a family.*register_family"):
        save(torch.nn.Linear(2, 2), tokenizer, tmp_path / "x")  # type: ignore[arg-type]
    assert not (tmp_path / "x").exists()


def test_the_network_of_the_page_trains_and_becomes_a_model_directory(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "page.py").write_text(code, encoding="utf-8")
    done = subprocess.run([sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "small-model" / "config.json").is_file()
