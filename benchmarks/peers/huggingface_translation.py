"""Hugging Face `generate` on the weights of a Headwise model directory, run by benchmarks/translation.py.

Standard input: {"model": directory, "sentences": [[ids]], "settings": [[beam, batch, how many sentences]], "threads"};
standard output: a JSON line for each setting, {"seconds", "outputs"}. With `--cold DIRECTORY TEXT` it is the shortest
script that translates one text, for timing from the outside.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import M2M100Config, M2M100ForConditionalGeneration, MarianConfig, MarianMTModel

PAD, BOS, EOS = 0, 2, 3
POSITIONS = 512
ATTENTION = {"q_proj": 0, "k_proj": 1, "v_proj": 2}


def build(directory: Path):
    """M2M100 is pre-norm, Marian post-norm; with these settings they are the same functions as ours."""
    sizes = json.loads((directory / "config.json").read_text(encoding="utf-8"))["architecture"]
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
    weights = load_file(directory / "model.safetensors")
    state = model.state_dict()
    for name in list(state):
        ours = translate_name(name, weights, sizes)
        if ours is not None:
            assert state[name].shape == ours.shape, (name, state[name].shape, ours.shape)
            state[name].copy_(ours)
    set_positions(model, sizes["model_dim"])
    return model


def translate_name(name: str, weights: dict, sizes: dict):
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


@torch.inference_mode()
def translate(model, sentences: list[list[int]], beam: int, batch: int) -> list[list[int]]:
    outputs: list[list[int]] = [[]] * len(sentences)
    order = sorted(range(len(sentences)), key=lambda i: -len(sentences[i]))
    for start in range(0, len(order), batch):
        places = order[start : start + batch]
        width = max(len(sentences[i]) for i in places) + 1
        ids = torch.full((len(places), width), PAD)
        for row, place in enumerate(places):
            ids[row, : len(sentences[place]) + 1] = torch.tensor([*sentences[place], EOS])
        found = model.generate(
            input_ids=ids, attention_mask=(ids != PAD).long(), num_beams=beam, do_sample=False,
            max_new_tokens=width + 50, length_penalty=0.6, early_stopping=True,
        )  # fmt: skip
        for row, place in enumerate(places):
            said = found[row, 1:].tolist()
            outputs[place] = said[: said.index(EOS)] if EOS in said else said
    return outputs


def main() -> None:
    request = json.load(sys.stdin)
    torch.set_num_threads(request["threads"])
    model = build(Path(request["model"]))
    translate(model, request["sentences"][:8], 2, 8)  # warm up
    for beam, batch, count in request["settings"]:
        start = time.perf_counter()
        outputs = translate(model, request["sentences"][:count], beam, batch)
        print(json.dumps({"seconds": time.perf_counter() - start, "outputs": outputs}), flush=True)


def cold(directory: Path, text: str) -> None:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    print(tokenizer.decode(translate(build(directory), [ids], 5, 1)[0], skip_special_tokens=False))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--cold"]:
        cold(Path(sys.argv[2]), sys.argv[3])
    else:
        main()
