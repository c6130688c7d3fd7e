"""Hugging Face `generate` on the weights of a Headwise model directory, run by benchmarks/translation.py.

With `--cold DIRECTORY TEXT` it is the shortest script that translates one text, for timing from the outside.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from measure_translation import BOS, EOS, PAD, Ids, fill, main, read_sizes, translate
from transformers import M2M100Config, M2M100ForConditionalGeneration, MarianConfig, MarianMTModel

POSITIONS = 512
ATTENTION = {"q_proj": 0, "k_proj": 1, "v_proj": 2}


def build(directory: Path):
    """M2M100 is pre-norm, Marian post-norm; with these settings they are the same functions as ours."""
    sizes = read_sizes(directory)
    pre = sizes["norm"] == "pre"
    config = (M2M100Config if pre else MarianConfig)(
        vocab_size=sizes["source_vocab"], d_model=sizes["model_dim"], max_position_embeddings=POSITIONS,
        encoder_layers=sizes["encoder_layers"], decoder_layers=sizes["decoder_layers"],
        encoder_attention_heads=sizes["num_heads"], decoder_attention_heads=sizes["num_heads"],
        encoder_ffn_dim=sizes["ff_dim"], decoder_ffn_dim=sizes["ff_dim"], activation_function=sizes["activation"],
        scale_embedding=True, pad_token_id=PAD, bos_token_id=BOS, eos_token_id=EOS, decoder_start_token_id=BOS,
        forced_eos_token_id=None,
    )  # fmt: skip
    model = (M2M100ForConditionalGeneration if pre else MarianMTModel)(config).eval()
    fill(model, directory, our_weights)
    set_positions(model, sizes["model_dim"])
    return model


def our_weights(name: str, weights: dict):
    """The tensor of ours that stands under a name of theirs; None for what has no counterpart."""
    if name in ("model.shared.weight", "lm_head.weight") or name.endswith("embed_tokens.weight"):
        return weights["source_embedding.weight"]
    if "embed_positions" in name or name == "final_logits_bias":
        return None
    parts = name.split(".")
    side, kind = parts[1], parts[-1]
    if parts[2] == "layer_norm":
        return weights[f"{side}.norm.{kind}"]
    place, rest = f"{side}.layers.{parts[3]}", parts[4]
    norms = {"self_attn_layer_norm": "self", "encoder_attn_layer_norm": "cross", "final_layer_norm": "feed"}
    if rest in norms:
        return weights[f"{place}.{norms[rest]}_residual.norm.{kind}"]
    if rest in ("fc1", "fc2"):
        return weights[f"{place}.feed_forward.{'inner' if rest == 'fc1' else 'outer'}.{kind}"]
    attention = f"{place}.{'self' if rest == 'self_attn' else 'cross'}_attention"
    if parts[5] == "out_proj":
        return weights[f"{attention}.output.{kind}"]
    return weights[f"{attention}.query_key_value.{kind}"].chunk(3)[ATTENTION[parts[5]]]


def set_positions(model, model_dim: int) -> None:
    """Our sines, sin and cos by turns; theirs are in halves."""
    angle = torch.arange(POSITIONS).double()[:, None] / 10000.0 ** (torch.arange(0, model_dim, 2).double() / model_dim)
    table = torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1).float()
    for stack in (model.model.encoder, model.model.decoder):
        positions = stack.embed_positions
        if hasattr(positions, "weights"):  # M2M100 counts from padding + 1
            offset = positions.weights.shape[0] - POSITIONS
            positions.weights = torch.cat((table[:1].expand(PAD + 1, -1), table, table[-1:].expand(offset, -1)))[
                : positions.weights.shape[0]
            ]
        else:
            positions.weight.data = table


def decode(model, ids: torch.Tensor, lengths: torch.Tensor, beam: int) -> Ids:
    found = model.generate(
        input_ids=ids, attention_mask=(ids != PAD).long(), num_beams=beam, do_sample=False,
        max_new_tokens=ids.size(1) + 50, length_penalty=0.6, early_stopping=True,
    )  # fmt: skip
    return found[:, 1:].tolist()


@torch.inference_mode()
def cold(directory: Path, text: str) -> None:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    print(tokenizer.decode(translate(build(directory), decode, [ids], 5, 1)[0], skip_special_tokens=False))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--cold"]:
        cold(Path(sys.argv[2]), sys.argv[3])
    else:
        main(build, decode)
