"""Small published models, as `transformers` writes them, with tokenizers of their own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import torch
from tokenizers import decoders, models, pre_tokenizers, trainers
from torch import nn

TEXT = "the quick brown fox jumps over the lazy dog\nand then it sleeps, again and again; 12 birds sing éèü 你好\n" * 20
END = "<|endoftext|>"


def randomised(model: nn.Module) -> nn.Module:
    """Biases and norms start at constants, which would hide a swap; small weights would hide everything else."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


def byte_level_bpe(size: int) -> tokenizers.Tokenizer:
    """A tokenizer of GPT-2's kind: the end of a text is its last token."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=size - 1, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([TEXT], trainer)
    tokenizer.add_special_tokens([END])
    return tokenizer


def publish_gpt2(folder: Path, seed: int = 0, **changes: Any) -> Any:
    """A random GPT-2 with its tokenizer.json; returns the model of `transformers`."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(seed)
    tokenizer = byte_level_bpe(300)
    vocab = tokenizer.get_vocab_size()
    sizes = {"n_positions": 64, "n_embd": 48, "n_layer": 2, "n_head": 4, "vocab_size": vocab, **changes}
    end = tokenizer.token_to_id(END)
    model = randomised(GPT2LMHeadModel(GPT2Config(bos_token_id=end, eos_token_id=end, **sizes)))
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return model


@pytest.fixture
def real_models() -> Path:
    """The folder of real published models: HEADWISE_MODELS, or shared/models beside the checkout."""
    beside = Path(__file__).parents[2] / "shared" / "models"
    folder = Path(os.environ.get("HEADWISE_MODELS") or beside)
    if not folder.is_dir():
        pytest.skip("no published models: set HEADWISE_MODELS to their folder")
    return folder
