"""Headwise itself, run by benchmarks/language_model.py: updates as `train` has them, text as `generate` has it."""

from __future__ import annotations

import torch
from measure_language import BETAS, CLIP, EPSILON, FIRST_WORD, RATE, Step, Write, main

from headwise.bundle.directory import Bundle
from headwise.config.cores import training_cores
from headwise.config.schema import Tokenizer as TokenizerSettings
from headwise.config.schema import Training
from headwise.data.blocks import block_batch
from headwise.decoding.generator import Generator
from headwise.models.lm import LanguageModel
from headwise.text.tokenizer import Tokenizer
from headwise.training.device import keep_memory, prepare_worker
from headwise.training.optimizers import build_optimizer
from headwise.training.step import Updater

PROMPT = "word1 word2 word3"


def build(request: dict) -> tuple[Step, torch.nn.Module]:
    keep_memory()
    prepare_worker()
    model = LanguageModel(**request["sizes"]).train()
    settings = Training(optimizer="adamw", betas=BETAS, epsilon=EPSILON, learning_rate=RATE)
    optimizer = build_optimizer(settings, model.parameters())
    updater = Updater(model, optimizer, clip_norm=CLIP, workers=training_cores(request["threads"]))

    def step(ids: torch.Tensor) -> float:
        return updater(block_batch(ids.numpy()), RATE).loss

    return step, model


def model_and_tokenizer(request: dict) -> tuple[LanguageModel, Tokenizer]:
    model = LanguageModel(**request["sizes"]).eval()
    words = " ".join(f"word{number}" for number in range(request["sizes"]["vocab"] - FIRST_WORD))
    tokenizer = Tokenizer.train([words], TokenizerSettings(kind="word", size=request["sizes"]["vocab"]))
    assert tokenizer.size == request["sizes"]["vocab"]
    return model, tokenizer


def prepare(request: dict) -> tuple[Write, torch.nn.Module]:
    """A whole generator: the prompt is tokenized and the answer is text."""
    model, tokenizer = model_and_tokenizer(request)
    generator = Generator(Bundle(None, "lm", model.architecture, (), {}, {}), tokenizer, model)

    def write(rows: int, tokens: int, sample: bool) -> int:
        texts = generator.generate(PROMPT, samples=rows, max_tokens=tokens, temperature=1.0 if sample else 0.0, seed=1)
        return sum(len(text.ids) for text in texts)

    return write, model


if __name__ == "__main__":
    main(build, prepare)
