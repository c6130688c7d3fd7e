"""The specification of T5 computes what the model computes, log-probability by log-probability."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ctranslate2.specs
import numpy as np
import pytest
import torch
from fixtures_models import word_tokenizers

from headwise.bundle.directory import open_bundle
from headwise.bundle.weights import save_model
from headwise.decoding.ctranslate2_engine import CTranslate2Engine
from headwise.decoding.torch_engine import TorchEngine
from headwise.interop.ctranslate2.export import export
from headwise.interop.ctranslate2.families.t5 import build
from headwise.models.t5 import T5

VERSIONS: dict[str, dict[str, Any]] = {
    "1.0": {},
    "1.1": {"gated": True, "activation": "gelu-tanh", "tie": "none"},
    "wide heads": {"head_dim": 12, "buckets": 8, "max_distance": 10},
    "narrow heads, absent padding": {"head_dim": 3, "tie": "none", "absent": 1},
}


def saved(folder: Path, **changes: Any) -> T5:
    torch.manual_seed(1)
    pair = word_tokenizers()
    sizes = {"model_dim": 32, "num_heads": 4, "head_dim": 8, "encoder_layers": 2, "decoder_layers": 2, "ff_dim": 48}
    model = T5(vocab=pair.target.size, **{**sizes, **changes}).eval()
    with torch.no_grad():  # norms and biases away from 1 and 0, where a wrong one would not be noticed
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1 or "_bias" in name:
                parameter.add_(torch.randn_like(parameter) * 0.4)
    save_model(folder, model, pair, family="t5", languages=("en", "de"))
    return model


@pytest.mark.parametrize("version", VERSIONS)
def test_log_probabilities_are_those_of_torch_whatever_the_version_scales(tmp_path: Path, version: str) -> None:
    model, pair = saved(tmp_path / "model", **VERSIONS[version]), word_tokenizers()
    export(open_bundle(tmp_path / "model"), pair, tmp_path / "out", "float32")
    rng = np.random.default_rng(2)
    sources, targets = (
        [rng.integers(4, pair.target.size, rng.integers(1, 40)).tolist() for _ in range(40)] for _ in range(2)
    )
    found = CTranslate2Engine(tmp_path / "out", pair, longest=64).score(sources, targets)
    for ours, theirs in zip(TorchEngine(model).score(sources, targets), found, strict=True):
        assert theirs == pytest.approx(ours, abs=2e-4)


def test_only_version_1_0_scales_its_output(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    for name, scaled in (("1.0", True), ("1.1", False)):
        saved(tmp_path / name, **VERSIONS[name])
        weights = load_file(tmp_path / name / "model.safetensors")
        spec = build(ctranslate2.specs, open_bundle(tmp_path / name).architecture, weights, word_tokenizers())
        spec.validate()
        scale = spec.decoder.scale_outputs
        assert scale.numpy() == pytest.approx(32**-0.5) if scaled else isinstance(scale, str)  # a string: not set
        bias = spec.decoder.layer[1].self_attention.relative_attention_bias
        assert np.array_equal(bias.numpy(), weights["decoder_bias.weight"])
