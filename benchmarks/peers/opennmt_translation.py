"""OpenNMT-py's translator on the weights of a Headwise model directory, run by benchmarks/translation.py.

Pre-norm models with tied embeddings only: OpenNMT-py has no other.
"""

from __future__ import annotations

import sys
import types
from argparse import Namespace
from pathlib import Path

for unused in ("spacy", "fasttext"):  # transforms of training data, which are not run here
    sys.modules[unused] = types.ModuleType(unused)

import pyonmttok  # noqa: E402
import torch  # noqa: E402
from measure_translation import Ids, fill, main, read_sizes  # noqa: E402
from onmt.model_builder import build_base_model  # noqa: E402
from onmt.translate import GNMTGlobalScorer, Translator  # noqa: E402

SPECIAL = ["<blank>", "<unk>", "<s>", "</s>"]
PARTS = {"linear_query": 0, "linear_keys": 1, "linear_values": 2}


def build(directory: Path):
    sizes = read_sizes(directory)
    assert sizes["norm"] == "pre", "OpenNMT-py is pre-norm"
    words = [*SPECIAL, *(f"w{number}" for number in range(4, sizes["source_vocab"]))]
    vocab = pyonmttok.build_vocab_from_tokens(words, special_tokens=SPECIAL)
    vocabs = {"src": vocab, "tgt": vocab, "data_task": "seq2seq", "decoder_start_token": "<s>"}
    model = build_base_model(options(sizes), vocabs).eval()
    fill(model, directory, our_weights)
    return model, vocabs


def options(sizes: dict) -> Namespace:
    from onmt.opts import model_opts
    from onmt.utils.parse import ArgumentParser

    parser = ArgumentParser()
    model_opts(parser)
    found = parser.parse_args([])
    found.__dict__.update(
        encoder_type="transformer", decoder_type="transformer", enc_layers=sizes["encoder_layers"],
        dec_layers=sizes["decoder_layers"], enc_hid_size=sizes["model_dim"], dec_hid_size=sizes["model_dim"],
        hidden_size=sizes["model_dim"], src_word_vec_size=sizes["model_dim"], tgt_word_vec_size=sizes["model_dim"],
        heads=sizes["num_heads"], transformer_ff=sizes["ff_dim"], position_encoding=True, dropout=[0.0],
        attention_dropout=[0.0], share_embeddings=True, share_decoder_embeddings=True, add_qkvbias=True,
        add_ffnbias=True,
        freeze_word_vecs_enc=False, freeze_word_vecs_dec=False, optim="adam", pos_ffn_activation_fn=sizes["activation"],
        parallel_mode="data_parallel", use_ckpting=[], model_task="seq2seq", layer_norm="standard", norm_eps=1e-5,
    )  # fmt: skip
    return found


def our_weights(name: str, weights: dict):
    """The tensor of ours that stands under a name of theirs; None for what has no counterpart."""
    if name.endswith("emb_luts.0.weight") or name == "generator.weight":
        return weights["source_embedding.weight"]
    if name == "generator.bias":
        return torch.zeros(weights["source_embedding.weight"].shape[0])
    if ".pe." in name:
        return None
    parts = name.split(".")
    side, kind = parts[0], parts[-1]
    if parts[1] == "layer_norm":
        return weights[f"{side}.norm.{kind}"]
    place, rest = f"{side}.layers.{parts[2]}", parts[3]
    norms = {"layer_norm": "self", "layer_norm_1": "self", "layer_norm_2": "cross"}
    if rest in norms:
        return weights[f"{place}.{norms[rest]}_residual.norm.{kind}"]
    if rest == "feed_forward":
        if parts[4] == "layer_norm":
            return weights[f"{place}.feed_residual.norm.{kind}"]
        return weights[f"{place}.feed_forward.{'inner' if parts[4] == 'w_1' else 'outer'}.{kind}"]
    attention = f"{place}.{'cross' if rest == 'context_attn' else 'self'}_attention"
    if parts[4] == "final_linear":
        return weights[f"{attention}.output.{kind}"]
    return weights[f"{attention}.query_key_value.{kind}"].chunk(3)[PARTS[parts[4]]]


def decode(model_and_vocabs, ids: torch.Tensor, lengths: torch.Tensor, beam: int) -> Ids:
    scorer = GNMTGlobalScorer(alpha=0.6, beta=0.0, length_penalty="wu", coverage_penalty="none")
    greedy = {"random_sampling_topk": 1} if beam == 1 else {}
    translator = Translator(
        *model_and_vocabs, beam_size=beam, max_length=ids.size(1) + 49, max_length_ratio=0, global_scorer=scorer,
        dump_beam="", report_score=False, **greedy,
    )  # fmt: skip
    request = {
        "src": ids[:, :, None], "srclen": lengths, "cid_line_id": list(range(len(ids))), "ind_in_bucket": lengths,
    }  # fmt: skip
    found = translator.translate_batch(request, attn_debug=False)["predictions"]
    return [best[0].tolist() for best in found]


if __name__ == "__main__":
    main(build, decode)
