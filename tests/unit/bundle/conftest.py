from __future__ import annotations

from pathlib import Path

import pytest
import torch

from headwise.bundle.weights import save_model
from headwise.config import schema
from headwise.models.transformer import Transformer
from headwise.text.tokenizer import Tokenizer, TokenizerPair

SIZES = {"model_dim": 16, "num_heads": 2, "encoder_layers": 1, "decoder_layers": 1, "ff_dim": 16}


@pytest.fixture(scope="session")
def tokenizers() -> TokenizerPair:
    return TokenizerPair.one(Tokenizer.train(["a b c d e"], schema.Tokenizer(kind="word", size=20)))


@pytest.fixture
def model(tokenizers: TokenizerPair) -> Transformer:
    torch.manual_seed(1)
    return Transformer(source_vocab=tokenizers.source.size, **SIZES).eval()  # type: ignore[arg-type]


@pytest.fixture
def directory(tmp_path: Path, model: Transformer, tokenizers: TokenizerPair) -> Path:
    """A model directory."""
    place = tmp_path / "model"
    save_model(place, model, tokenizers, family="transformer", languages=("en", "de"), card={"validation": {"bleu": 1}})
    return place
