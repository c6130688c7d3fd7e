"""Headwise's fast engine, run by benchmarks/language_model.py: CTranslate2 with int8 weights, the likeliest text."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
from headwise_language import PROMPT, model_and_tokenizer
from measure_language import Write, main

from headwise.bundle.weights import save_model
from headwise.text.tokenizer import TokenizerPair
from headwise.workflows.generate import open_generator


def prepare(request: dict) -> tuple[Write, torch.nn.Module]:
    model, tokenizer = model_and_tokenizer(request)
    folder = Path(tempfile.mkdtemp()) / "model"
    save_model(folder, model, TokenizerPair(tokenizer, tokenizer), family="lm")
    generator = open_generator(folder, "ctranslate2", token_scores=False)

    def write(rows: int, tokens: int, sample: bool) -> int:
        if sample:
            return 0  # what this engine does not do
        prompts = [f"{PROMPT[:-1]}{3 + number}" for number in range(rows)]
        return sum(len(text.ids) for (text,) in generator.generate_each(prompts, max_tokens=tokens, temperature=0.0))

    return write, model


if __name__ == "__main__":
    main(lambda request: (lambda ids: 0.0, torch.nn.Identity()), prepare)
