"""OpenNMT-py's model and loss, run by benchmarks/training.py on given batches. It is pre-norm: it has no other.

Dropout: attention, feed-forward, sub-layers, embeddings.
"""

from __future__ import annotations

import sys
import types
from argparse import Namespace

for unused in ("spacy", "fasttext"):  # transforms of training data, which are not run here
    sys.modules[unused] = types.ModuleType(unused)

import pyonmttok  # noqa: E402
import torch  # noqa: E402
from measure_training import Batch, Step, adam, main  # noqa: E402
from onmt.model_builder import build_model  # noqa: E402
from onmt.opts import train_opts  # noqa: E402
from onmt.utils.loss import LossCompute  # noqa: E402
from onmt.utils.parse import ArgumentParser  # noqa: E402

SPECIAL = ["<blank>", "<unk>", "<s>", "</s>"]


def build(request: dict) -> tuple[Step, torch.nn.Module]:
    words = [*SPECIAL, *(f"w{number}" for number in range(len(SPECIAL), request["vocabulary"]))]
    vocab = pyonmttok.build_vocab_from_tokens(words, special_tokens=SPECIAL)
    settings = options(request)
    vocabs = {"src": vocab, "tgt": vocab, "data_task": "seq2seq", "decoder_start_token": "<s>"}
    model = build_model(settings, settings, vocabs, None, -1).train()
    loss_of = LossCompute.from_opts(settings, model, vocab)
    optimizer = adam(model)

    def step(batch: Batch) -> float:
        target = batch.target[:, :, None]
        optimizer.zero_grad(set_to_none=True)
        states, attention = model(batch.source[:, :, None], target, batch.source_lengths)
        loss, _ = loss_of({"tgt": target, "srclen": batch.source_lengths}, states, attention)
        loss /= batch.tokens
        loss.backward()
        optimizer.step()
        return loss.item()

    return step, model


def options(request: dict) -> Namespace:
    """Its own defaults, with the sizes of the preset and the start that its recipes for Transformers take."""
    parser = ArgumentParser()
    train_opts(parser)
    sizes = request["sizes"]
    found = parser.parse_args(["-data", "{}", "-src_vocab", "unused", "-save_model", "unused"])
    found.__dict__.update(
        encoder_type="transformer", decoder_type="transformer", enc_layers=sizes["encoder_layers"],
        dec_layers=sizes["decoder_layers"], enc_hid_size=sizes["model_dim"], dec_hid_size=sizes["model_dim"],
        hidden_size=sizes["model_dim"], src_word_vec_size=sizes["model_dim"], tgt_word_vec_size=sizes["model_dim"],
        heads=sizes["num_heads"], transformer_ff=sizes["ff_dim"], position_encoding=True, dropout=[sizes["dropout"]],
        attention_dropout=[sizes["dropout"]], share_embeddings=True, share_decoder_embeddings=True, add_qkvbias=True,
        add_ffnbias=True, pos_ffn_activation_fn=sizes["activation"], label_smoothing=request["smoothing"],
        param_init=0.0, param_init_glorot=True, optim="adam", model_task="seq2seq", world_size=1, gpu_ranks=[],
    )  # fmt: skip
    return found


if __name__ == "__main__":
    main(build)
