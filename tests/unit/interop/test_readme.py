"""The example of every exported directory runs, without Headwise."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from fixtures_models import word_tokenizers
from fixtures_published import publish_gpt2, publish_marian

from headwise.bundle.directory import Bundle
from headwise.bundle.weights import save_model
from headwise.interop.readme import readme
from headwise.models.lm import LanguageModel
from headwise.models.transformer import Transformer
from headwise.workflows.export import export_model
from headwise.workflows.import_model import import_model

SMALL = {"model_dim": 16, "num_heads": 2, "ff_dim": 16}


def own_translator(folder: Path) -> None:
    pair = word_tokenizers()
    model = Transformer(source_vocab=pair.source.size, **SMALL, encoder_layers=1, decoder_layers=1)
    save_model(folder, model, pair, family="transformer", languages=("en", "de"))


def own_language_model(folder: Path) -> None:
    pair = word_tokenizers()
    settings = {"norm": "pre", "positions": "learned", "scale_embeddings": False, "max_length": 64}
    model = LanguageModel(vocab=pair.target.size, **SMALL, layers=1, **settings)
    save_model(folder, model, pair, family="lm")


def gpt2(folder: Path) -> None:
    publish_gpt2(folder.parent / "hub")
    import_model(folder.parent / "hub", folder)


def marian(folder: Path) -> None:
    publish_marian(folder.parent / "hub")
    import_model(folder.parent / "hub", folder)


@pytest.mark.parametrize("make", [own_translator, own_language_model, gpt2, marian])
@pytest.mark.parametrize("to", ["ctranslate2", "huggingface"])
def test_the_example_runs_as_it_stands(
    tmp_path: Path,
    make: Callable[[Path], None],
    to: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    torch.manual_seed(1)
    make(tmp_path / "model")
    export_model(tmp_path / "model", tmp_path / "out", to=to, precision="float32")
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len([line for line in example.splitlines() if line]) <= 10
    assert "headwise" not in example.lower()
    (tmp_path / "example.py").write_text(example, encoding="utf-8")
    monkeypatch.chdir(tmp_path / "out")
    runpy.run_path(str(tmp_path / "example.py"))
    assert capsys.readouterr().out


def test_the_licence_stands_at_the_head() -> None:
    bundle = Bundle(Path("model"), "lm", {}, card={"origin": {"licence": "mit"}}, task="generate")
    text = readme(bundle, "transformers", "print()")
    assert text.startswith("---\nlicense: mit\n---\n\n# lm, generate\n")
    assert readme(Bundle(Path("model"), "lm", {}, ("en",), task="generate"), "x", "").count("```") == 0
