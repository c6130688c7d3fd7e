"""JoeyNMT's search on the weights of a Headwise model directory, run by benchmarks/translation.py.

Tied embeddings only. JoeyNMT computes the whole output again at each
step: it has no cache.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import torch
from joeynmt.batch import Batch
from joeynmt.model import build_model
from joeynmt.search import search
from joeynmt.vocabulary import Vocabulary
from measure_translation import EOS, PAD, UNK, Ids, fill, main, read_sizes

# Its special tokens stand in an order of its own: unknown first, then padding.
SPECIAL = SimpleNamespace(
    unk_token="<unk>", pad_token="<pad>", bos_token="<s>", eos_token="</s>", sep_token=None, lang_tags=[],
    unk_id=0, pad_id=1, bos_id=2, eos_id=3, sep_id=None,
)  # fmt: skip
ATTENTION = {"q_layer": 0, "k_layer": 1, "v_layer": 2}
BLOCKS = {"src_src_att": "self", "trg_trg_att": "self", "src_trg_att": "cross"}


def build(directory: Path):
    sizes = read_sizes(directory)
    vocabulary = Vocabulary([f"w{number}" for number in range(4, sizes["source_vocab"])], SPECIAL)
    model = build_model(settings(sizes), vocabulary, vocabulary).eval()
    fill(model, directory, our_weights)
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 1e-5
    return model


def settings(sizes: dict) -> dict:
    def stack(layers: int) -> dict:
        return {
            "type": "transformer", "num_layers": layers, "num_heads": sizes["num_heads"],
            "embeddings": {"embedding_dim": sizes["model_dim"], "scale": True, "dropout": 0.0},
            "hidden_size": sizes["model_dim"], "ff_size": sizes["ff_dim"], "dropout": 0.0,
            "layer_norm": sizes["norm"], "activation": sizes["activation"],
        }  # fmt: skip

    return {
        "initializer": "xavier_uniform", "embed_initializer": "xavier_uniform", "bias_initializer": "zeros",
        "tied_embeddings": True, "tied_softmax": True,
        "encoder": stack(sizes["encoder_layers"]), "decoder": stack(sizes["decoder_layers"]),
    }  # fmt: skip


def our_weights(name: str, weights: dict):
    """The tensor of ours that stands under a name of theirs; None for what has no counterpart."""
    if "lut" in name or name == "decoder.output_layer.weight":
        return swapped(weights["source_embedding.weight"])
    if name.endswith("pe.pe"):
        return None
    parts = name.split(".")
    side, kind = parts[0], parts[-1]
    if parts[1] == "layer_norm":
        return weights[f"{side}.norm.{kind}"]
    place, rest = f"{side}.layers.{parts[2]}", parts[3]
    norms = {"layer_norm": "self", "x_layer_norm": "self", "dec_layer_norm": "cross"}
    if rest in norms:
        return weights[f"{place}.{norms[rest]}_residual.norm.{kind}"]
    if rest == "feed_forward":
        if parts[4] == "layer_norm":
            return weights[f"{place}.feed_residual.norm.{kind}"]
        return weights[f"{place}.feed_forward.{'inner' if parts[5] == '0' else 'outer'}.{kind}"]
    attention = f"{place}.{BLOCKS[rest]}_attention"
    if parts[4] == "output_layer":
        return weights[f"{attention}.output.{kind}"]
    return weights[f"{attention}.query_key_value.{kind}"].chunk(3)[ATTENTION[parts[4]]]


def swapped(table: torch.Tensor) -> torch.Tensor:
    """Padding and unknown change places."""
    return torch.cat((table[[UNK, PAD]], table[2:]))


def decode(model, ids: torch.Tensor, lengths: torch.Tensor, beam: int) -> Ids:
    request = Batch(
        src=torch.where(ids < 2, 1 - ids, ids), src_length=lengths, src_prompt_mask=None, trg=None,
        trg_prompt_mask=None, indices=torch.arange(len(ids)), device=torch.device("cpu"), pad_index=SPECIAL.pad_id,
        eos_index=EOS, is_train=False,
    )  # fmt: skip
    found, _, _ = search(
        model=model, batch=request, max_output_length=ids.size(1) + 49, beam_size=beam, beam_alpha=0.6, n_best=1,
        generate_unk=False,
    )  # fmt: skip
    return found.tolist()


if __name__ == "__main__":
    main(build, decode)
