"""An export computes what the model computes, for every arrangement, and is never used when it is stale."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ctranslate2
import numpy as np
import pytest
import torch
from ctranslate2.specs import model_spec
from fixtures_models import english_sentences, small_transformer, word_tokenizers

from headwise.bundle.directory import Bundle, open_bundle
from headwise.bundle.weights import save_model
from headwise.config import schema
from headwise.decoding.ctranslate2_engine import CTranslate2Engine
from headwise.decoding.torch_engine import TorchEngine
from headwise.errors import ModelError, UsageError
from headwise.interop.ctranslate2.export import _to_int8, cannot_export, export, is_current
from headwise.interop.ctranslate2.kept import _key, kept_export
from headwise.models.lm import LanguageModel
from headwise.text.tokenizer import EOS, Tokenizer, TokenizerPair
from headwise.workflows.translate import open_translator

ARRANGEMENTS: list[dict[str, Any]] = [
    {"norm": "post"},
    {"norm": "pre"},
    {"norm": "post", "final_norm": True},
    {"norm": "pre", "final_norm": False},
    {"activation": "gelu"},
    {"activation": "gelu-tanh"},
    {"activation": "silu"},
    {"positions": "learned", "max_length": 64},
    {"positions": "none"},
    {"tie": "target"},
    {"tie": "none"},
    {"encoder_layers": 3, "decoder_layers": 1},
]


def randomise(model: torch.nn.Module) -> None:
    """Biases and norms away from 0 and 1, where a wrong one would not be noticed."""
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.3)


def saved(directory: Path, tokenizers: TokenizerPair, **changes: Any) -> tuple[Bundle, torch.nn.Module]:
    torch.manual_seed(1)
    model = small_transformer(tokenizers.source.size, **changes).eval()
    randomise(model)
    save_model(directory, model, tokenizers, family="transformer", languages=("en", "de"))
    return open_bundle(directory), model


@pytest.mark.parametrize("changes", ARRANGEMENTS, ids=lambda changes: "-".join(map(str, changes.values())))
def test_an_exported_model_gives_the_same_probabilities(tmp_path: Path, changes: dict[str, Any]) -> None:
    tokenizers = word_tokenizers()
    bundle, model = saved(tmp_path / "model", tokenizers, **changes)
    export(bundle, tokenizers, tmp_path / "exported", "float32")
    texts = english_sentences(12, seed=5)
    sources, targets = tokenizers.source.encode_batch(texts), tokenizers.target.encode_batch(texts[::-1])
    expected = TorchEngine(model).score(sources, targets)
    found = CTranslate2Engine(tmp_path / "exported", tokenizers, longest=64).score(sources, targets)
    for ours, theirs in zip(expected, found, strict=True):
        assert theirs == pytest.approx(ours, abs=1e-4)


def test_two_vocabularies_are_exported_as_two(tmp_path: Path) -> None:
    settings = schema.Tokenizer(kind="word", size=100)
    tokenizers = TokenizerPair(Tokenizer.train(["a b c d"], settings), Tokenizer.train(["u v w x y z"], settings))
    bundle, model = saved(tmp_path / "model", tokenizers, target_vocab=tokenizers.target.size, tie="target")
    export(bundle, tokenizers, tmp_path / "exported", "float32")
    sources, targets = tokenizers.source.encode_batch(["a c", "d"]), tokenizers.target.encode_batch(["z u v", "w x"])
    found = CTranslate2Engine(tmp_path / "exported", tokenizers, longest=64).score(sources, targets)
    for ours, theirs in zip(TorchEngine(model).score(sources, targets), found, strict=True):
        assert theirs == pytest.approx(ours, abs=1e-4)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "none"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_an_exported_language_model_gives_the_same_probabilities(tmp_path: Path, positions: str, norm: str) -> None:
    tokenizer = Tokenizer.train(["one two three four five six"], schema.Tokenizer(kind="word", size=20))
    torch.manual_seed(1)
    model = LanguageModel(
        vocab=tokenizer.size,
        model_dim=32,
        num_heads=4,
        layers=2,
        ff_dim=64,
        norm=norm,
        positions=positions,
        max_length=32,
    ).eval()
    randomise(model)
    save_model(tmp_path / "model", model, TokenizerPair.one(tokenizer), family="lm")
    export(open_bundle(tmp_path / "model"), TokenizerPair.one(tokenizer), tmp_path / "exported", "float32")
    ids = [EOS, *tokenizer.encode("one three five two two six")]
    generator = ctranslate2.Generator(str(tmp_path / "exported"), intra_threads=1)
    (found,) = generator.score_batch([[tokenizer.vocabulary[number] for number in ids]])
    with torch.no_grad():
        expected = model(torch.tensor([ids]))[0].log_softmax(-1)
    assert found.log_probs == pytest.approx([float(expected[t, ids[t + 1]]) for t in range(len(ids) - 1)], abs=1e-4)


def test_an_export_is_current_until_the_weights_change_or_it_is_damaged(tmp_path: Path) -> None:
    tokenizers = word_tokenizers()
    bundle, model = saved(tmp_path / "model", tokenizers)
    exported = tmp_path / "exported"
    assert not is_current(bundle, exported, "int8")
    export(bundle, tokenizers, exported, "int8")
    assert is_current(bundle, exported, "int8")
    assert not is_current(bundle, exported, "float32")

    with torch.no_grad():
        next(model.parameters()).add_(1.0)
    save_model(tmp_path / "model", model, tokenizers, family="transformer")
    changed = open_bundle(tmp_path / "model")
    assert not is_current(changed, exported, "int8")

    export(changed, tokenizers, exported, "int8")
    assert is_current(changed, exported, "int8")
    weights = exported / "model.bin"
    weights.write_bytes(weights.read_bytes()[:-100])
    assert not is_current(changed, exported, "int8")


def test_int8_weights_are_as_near_as_their_range_allows_and_two_products_fit_into_16_bits() -> None:
    layer = SimpleNamespace(weight=None, weight_scale=None, bias=None)
    matrix = np.random.default_rng(1).normal(size=(50, 30)).astype(np.float32)
    matrix[3] = 0
    _to_int8(model_spec.NumpyVariable, layer, "encoder/layer_0/weight", model_spec.NumpyVariable(matrix))
    weight, scale = layer.weight.numpy(), layer.weight_scale.numpy()
    assert weight.dtype == np.int8
    assert scale.dtype == np.float32
    assert (np.abs(weight).max(axis=1) == np.where(matrix.any(axis=1), 64, 0)).all()
    assert 2 * 255 * int(weight.max()) <= np.iinfo(np.int16).max
    np.testing.assert_allclose(weight / scale[:, None], matrix, atol=0.501 * np.abs(matrix).max() / 64)
    for name in ("bias", "weight_scale"):  # no room for a scale
        before = getattr(layer, name)
        _to_int8(model_spec.NumpyVariable, layer, name, before)
        assert getattr(layer, name) is before


def test_int8_is_much_smaller_than_float32(tmp_path: Path) -> None:
    tokenizers = word_tokenizers()
    bundle, _ = saved(tmp_path / "model", tokenizers, model_dim=128, ff_dim=512, positions="learned", max_length=16)
    sizes = {}
    for precision in ("float32", "int8"):
        export(bundle, tokenizers, tmp_path / precision, precision)
        sizes[precision] = (tmp_path / precision / "model.bin").stat().st_size
    assert sizes["int8"] < 0.35 * sizes["float32"]


def test_translating_with_an_export_never_imports_torch(tmp_path: Path) -> None:
    saved(tmp_path / "model", word_tokenizers())
    open_translator(tmp_path / "model")  # makes the export, for which CTranslate2's own converter imports torch
    script = (
        "import sys\n"
        "from headwise.workflows.translate import open_translator\n"
        f"translator = open_translator({str(tmp_path / 'model')!r})\n"
        "translator.translate(['one two'])\n"
        "assert translator.engine.name == 'ctranslate2'\n"
        "assert 'torch' not in sys.modules, 'torch was imported'\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_what_cannot_be_exported_is_refused_and_nothing_is_left_behind(tmp_path: Path) -> None:
    tokenizers = word_tokenizers()
    bundle, _ = saved(tmp_path / "model", tokenizers)
    with pytest.raises(UsageError, match="precision"):
        export(bundle, tokenizers, tmp_path / "exported", "int2")
    (tmp_path / "model" / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(ModelError, match=r"model\.safetensors"):
        export(bundle, tokenizers, tmp_path / "exported", "int8")
    assert not (tmp_path / "exported").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_directory_that_is_no_export_is_a_clear_error(tmp_path: Path) -> None:
    tokenizers = word_tokenizers()
    bundle, _ = saved(tmp_path / "model", tokenizers)
    export(bundle, tokenizers, tmp_path / "exported", "int8")
    shutil.copytree(tmp_path / "exported", tmp_path / "broken")
    (tmp_path / "broken" / "model.bin").write_bytes(b"x")
    with pytest.raises(ModelError, match="ctranslate2"):
        CTranslate2Engine(tmp_path / "broken", tokenizers, longest=64)
    with pytest.raises(ModelError, match="ctranslate2"):
        CTranslate2Engine(tmp_path / "model", tokenizers, longest=64)


def test_what_ctranslate2_does_not_have_is_said_before_anything_is_written(tmp_path: Path) -> None:
    tokenizers = word_tokenizers()
    bundle, _ = saved(tmp_path / "model", tokenizers)
    assert cannot_export(bundle) is None
    for changes, reason in (
        ({"family": "lm", "architecture": {"cutoffs": [10]}}, "ctranslate2 has no adaptive softmax (model.cutoffs)"),
        ({"family": "toy"}, "ctranslate2 has no model of family 'toy'"),
    ):
        other = replace(bundle, **changes)  # type: ignore[arg-type]
        assert cannot_export(other) == reason
        with pytest.raises(UsageError, match=re.escape(f"cannot be exported: {reason}; use the torch engine")):
            export(other, tokenizers, tmp_path / "exported")
    assert not (tmp_path / "exported").exists()


def test_an_export_of_another_architecture_is_stale_whatever_its_weights(tmp_path: Path) -> None:
    tokenizers = word_tokenizers()
    bundle, _ = saved(tmp_path / "model", tokenizers)
    export(bundle, tokenizers, tmp_path / "exported", "int8")
    assert is_current(bundle, tmp_path / "exported", "int8")
    for change in ({"num_heads": 2}, {"norm": "post"}, {"activation": "gelu"}):
        other = replace(bundle, architecture={**bundle.architecture, **change})
        assert not is_current(other, tmp_path / "exported", "int8")
        assert _key(other) != _key(bundle)
    assert not is_current(replace(bundle, family="lm"), tmp_path / "exported", "int8")


def test_an_architecture_that_the_weights_are_not_of_is_never_exported(tmp_path: Path) -> None:
    tokenizers = word_tokenizers()
    bundle, _ = saved(tmp_path / "model", tokenizers)
    other = replace(bundle, architecture={**bundle.architecture, "ff_dim": 64})
    with pytest.raises(ModelError, match="does not fit its architecture"):
        export(other, tokenizers, tmp_path / "exported", "int8")


def test_pipes_in_place_of_the_exports_files_are_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tokenizers = word_tokenizers()
    bundle, _ = saved(tmp_path / "model", tokenizers)
    (tmp_path / "model/ctranslate2/int8").mkdir(parents=True)
    os.mkfifo(tmp_path / "model/ctranslate2/int8/export.json")
    assert not is_current(bundle, tmp_path / "model/ctranslate2/int8", "int8")
    os.mkfifo(tmp_path / "model/ctranslate2/.int8.lock")
    assert kept_export(bundle, tokenizers).is_relative_to(tmp_path / "cache")


@pytest.mark.parametrize("name", ["model.bin", "config.json"])
def test_an_export_with_a_file_of_a_terabyte_is_not_read(tmp_path: Path, name: str) -> None:
    tokenizers = word_tokenizers()
    bundle, _ = saved(tmp_path / "model", tokenizers)
    place = tmp_path / "export"
    export(bundle, tokenizers, place, "int8")
    assert is_current(bundle, place, "int8")
    with (place / name).open("wb") as stream:
        stream.truncate(1 << 40)
    assert not is_current(bundle, place, "int8")
