from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from headwise.bundle.assets import Assets
from headwise.bundle.directory import open_bundle
from headwise.bundle.weights import save_model
from headwise.config import schema
from headwise.config.families.lm import FAMILY
from headwise.errors import UsageError
from headwise.interop.huggingface.write import export
from headwise.models.lm import LanguageModel
from headwise.text.tokenizer import Tokenizer, TokenizerPair


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"norm": "post"}, "norm = 'pre'"),
        ({"positions": "sinusoidal"}, "learned positions"),
        ({"positions": "rotary"}, "learned positions"),
        ({"scale_embeddings": True}, "scale_embeddings = false"),
        ({"cutoffs": [20]}, "no adaptive softmax"),
    ],
)
def test_what_gpt2_does_not_have_is_refused_with_its_reason(tmp_path: Path, changes: dict[str, Any], why: str) -> None:
    torch.manual_seed(1)
    tokenizers = TokenizerPair.one(Tokenizer.train(["a b c d"], schema.Tokenizer(kind="byte")))
    sizes = {**FAMILY.presets["gpt2"], "model_dim": 8, "num_heads": 2, "layers": 1, "ff_dim": 8, **changes}
    save_model(tmp_path / "own", LanguageModel(vocab=tokenizers.target.size, **sizes), tokenizers, family="lm")
    with pytest.raises(UsageError, match=f"cannot be exported: .*{why}"):
        export(open_bundle(tmp_path / "own"), Assets(tokenizers), tmp_path / "out")
    assert not (tmp_path / "out").exists()
