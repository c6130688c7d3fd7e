"""Hugging Face GPT-2 with SDPA attention, run by benchmarks/language_model.py; text by `generate` with its cache."""

from __future__ import annotations

import torch
from measure_language import FIRST_WORD, Step, Write, adamw, main, plain_update
from transformers import GPT2Config, GPT2LMHeadModel


def gpt2(request: dict) -> GPT2LMHeadModel:
    sizes = request["sizes"]
    rates = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), sizes["dropout"])
    config = GPT2Config(
        vocab_size=sizes["vocab"], n_positions=sizes["max_length"], n_embd=sizes["model_dim"], n_layer=sizes["layers"],
        n_head=sizes["num_heads"], n_inner=sizes["ff_dim"], bos_token_id=None, eos_token_id=None, **rates,
        attn_implementation="sdpa",
    )  # fmt: skip
    return GPT2LMHeadModel(config)


def build(request: dict) -> tuple[Step, torch.nn.Module]:
    model = gpt2(request).train()
    optimizer = adamw(model)

    def step(ids: torch.Tensor) -> float:
        logits = model(input_ids=ids[:, :-1], use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        return plain_update(model, optimizer, loss)

    return step, model


def prepare(request: dict) -> tuple[Write, torch.nn.Module]:
    model = gpt2(request).eval()

    def write(rows: int, tokens: int, sample: bool) -> int:
        prompt = torch.arange(FIRST_WORD, FIRST_WORD + 4).expand(rows, -1)
        filters = {"top_k": 0} if sample else {}
        written = model.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=tokens, do_sample=sample, use_cache=True,
            pad_token_id=0, eos_token_id=None, **filters,
        )  # fmt: skip
        return (written.size(1) - prompt.size(1)) * rows

    return write, model


if __name__ == "__main__":
    main(build, prepare)
