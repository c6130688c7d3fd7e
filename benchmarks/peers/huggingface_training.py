"""Hugging Face MarianMT with SDPA attention, run by benchmarks/training.py. The loss is torch's cross-entropy.

Dropout: MarianConfig's default is 0.1 on sub-layers and embeddings and none inside; the request may set the others.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from measure_training import BOS, EOS, PAD, POSITIONS, Batch, Step, adam, main
from transformers import MarianConfig, MarianMTModel


def build(request: dict) -> tuple[Step, torch.nn.Module]:
    sizes = request["sizes"]
    config = MarianConfig(
        vocab_size=request["vocabulary"], d_model=sizes["model_dim"], max_position_embeddings=POSITIONS,
        encoder_layers=sizes["encoder_layers"], decoder_layers=sizes["decoder_layers"],
        encoder_attention_heads=sizes["num_heads"], decoder_attention_heads=sizes["num_heads"],
        encoder_ffn_dim=sizes["ff_dim"], decoder_ffn_dim=sizes["ff_dim"], activation_function=sizes["activation"],
        dropout=sizes["dropout"], **request["options"], scale_embedding=True,
        pad_token_id=PAD, bos_token_id=BOS, eos_token_id=EOS, decoder_start_token_id=BOS, forced_eos_token_id=None,
        attn_implementation="sdpa",
    )  # fmt: skip
    model = MarianMTModel(config).train()
    assert model.config._attn_implementation == "sdpa"
    optimizer = adam(model)

    def step(batch: Batch) -> float:
        mask = (batch.source != PAD).long() if batch.padded else None
        logits = model(
            input_ids=batch.source, attention_mask=mask, decoder_input_ids=batch.target[:, :-1], use_cache=False
        ).logits
        loss = F.cross_entropy(
            logits.flatten(0, 1), batch.targets.flatten(), ignore_index=PAD, label_smoothing=request["smoothing"]
        )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step, model


if __name__ == "__main__":
    main(build)
