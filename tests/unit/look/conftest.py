from __future__ import annotations

import pytest
import torch

from headwise.config import schema
from headwise.look.capture import Look, look_at_translation
from headwise.models.transformer import Transformer
from headwise.text.tokenizer import Tokenizer, TokenizerPair

ENGLISH = ["the animal did not cross the street", "because it was too tired", "two dogs cross the wide street"]
CHINESE = ["动物没有过马路", "因为它太累了", "两只狗过马路"]
SOURCE, TARGET = "the animal was too tired", "两只狗 tired"


@pytest.fixture(scope="session")
def tokenizers() -> TokenizerPair:
    settings = schema.Tokenizer(kind="bpe", size=330)
    return TokenizerPair.one(Tokenizer.train([*ENGLISH, *CHINESE] * 3, settings))


@pytest.fixture(scope="session")
def model(tokenizers: TokenizerPair) -> Transformer:
    torch.manual_seed(3)
    sizes = {"model_dim": 32, "num_heads": 4, "encoder_layers": 2, "decoder_layers": 3, "ff_dim": 48}
    return Transformer(source_vocab=tokenizers.source.size, **sizes).eval()  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def seen(model: Transformer, tokenizers: TokenizerPair) -> Look:
    return look_at_translation(model, tokenizers, tokenizers.source.encode(SOURCE), tokenizers.target.encode(TARGET))
