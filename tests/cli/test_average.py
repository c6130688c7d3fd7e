"""`headwise average`."""

from __future__ import annotations

from pathlib import Path

import torch
from fixtures_models import small_transformer, word_tokenizers
from safetensors.torch import load_file
from verbs import run

from headwise.bundle.weights import save_model


def test_the_mean_of_models_is_a_model_and_nothing_is_overwritten(tmp_path: Path) -> None:
    tokenizers = word_tokenizers()
    for number in range(2):
        torch.manual_seed(number)
        model = small_transformer(tokenizers.source.size)
        save_model(tmp_path / str(number), model, tokenizers, family="transformer", languages=("en", "de"))
    done = run("average", tmp_path / "0", tmp_path / "1", tmp_path / "mean")
    assert (done.code, done.err) == (0, f"{tmp_path / 'mean'}: the mean of 2 models\n")
    first, second, mean = (load_file(tmp_path / name / "model.safetensors") for name in ("0", "1", "mean"))
    for name, tensor in mean.items():
        torch.testing.assert_close(tensor, (first[name] + second[name]) / 2)
    again = run("average", tmp_path / "0", tmp_path / "mean")
    assert again.code == 2
    assert "already exists; choose a new directory" in again.err
