"""JoeyNMT's model and loss, run by benchmarks/training.py on given batches.

Dropout: attention, feed-forward, sub-layers, embeddings. Its loss is a divergence; the entropy of the smoothed
target is added to what is reported, so that it is a cross-entropy like the others' (the gradient is the same).
"""

from __future__ import annotations

import math
from types import SimpleNamespace

import torch
from joeynmt.batch import Batch as JoeyBatch
from joeynmt.model import build_model
from joeynmt.vocabulary import Vocabulary
from measure_training import PAD, Batch, Step, adam, main

# Its special tokens stand in an order of its own: unknown first, then padding.
JOEY_PAD = 1
SPECIAL = SimpleNamespace(
    unk_token="<unk>", pad_token="<pad>", bos_token="<s>", eos_token="</s>", sep_token=None, lang_tags=[],
    unk_id=0, pad_id=JOEY_PAD, bos_id=2, eos_id=3, sep_id=None,
)  # fmt: skip


def build(request: dict) -> tuple[Step, torch.nn.Module]:
    words = [f"w{number}" for number in range(4, request["vocabulary"])]
    vocabulary, smoothing = Vocabulary(words, SPECIAL), request["smoothing"]
    assert len(vocabulary) == request["vocabulary"]
    model = build_model(settings(request["sizes"]), vocabulary, vocabulary).train()
    model.loss_function = ("crossentropy", smoothing)
    optimizer = adam(model)
    each = smoothing / (len(vocabulary) - 2)
    entropy = -(1 - smoothing) * math.log(1 - smoothing) - smoothing * math.log(each)

    def step(batch: Batch) -> float:
        joey = JoeyBatch(
            src=own_padding(batch.source), src_length=batch.source_lengths, src_prompt_mask=None,
            trg=own_padding(batch.target), trg_prompt_mask=None, indices=torch.arange(len(batch.source)),
            device=torch.device("cpu"), pad_index=JOEY_PAD, eos_index=SPECIAL.eos_id,
        )  # fmt: skip
        joey.sort_by_src_length()
        total, *_ = model(return_type="loss", **vars(joey))
        loss = joey.normalize(total, normalization="tokens")
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.item() + entropy

    return step, model


def own_padding(ids: torch.Tensor) -> torch.Tensor:
    return ids.masked_fill(ids == PAD, JOEY_PAD)


def settings(sizes: dict) -> dict:
    """One matrix for all embeddings, and the start that its recipes take."""
    both = recurrent(sizes) if "cell" in sizes else transformer(sizes)
    return {
        "initializer": "xavier_uniform", "embed_initializer": "xavier_uniform", "bias_initializer": "zeros",
        "tied_embeddings": True, "tied_softmax": True, **both,
    }  # fmt: skip


def recurrent(sizes: dict) -> dict:
    """Luong's attention with input feeding; both directions of the encoder together are as wide as the decoder."""
    rates = {"dropout": sizes["dropout"], "hidden_dropout": sizes["dropout"]}
    every = {
        "type": "recurrent", "rnn_type": sizes["cell"], **rates,
        "embeddings": {"embedding_dim": sizes["model_dim"], "scale": False, "dropout": sizes["dropout"]},
    }  # fmt: skip
    return {
        "encoder": {
            **every, "hidden_size": sizes["hidden_dim"] // 2, "bidirectional": True,
            "num_layers": sizes["encoder_layers"],
        },
        "decoder": {
            **every, "hidden_size": sizes["hidden_dim"], "num_layers": sizes["decoder_layers"], "attention": "luong",
            "input_feeding": True, "init_hidden": "bridge",
        },
    }  # fmt: skip


def transformer(sizes: dict) -> dict:
    """Post-norm."""

    def stack(layers: int) -> dict:
        return {
            "type": "transformer", "num_layers": layers, "num_heads": sizes["num_heads"],
            "embeddings": {"embedding_dim": sizes["model_dim"], "scale": True, "dropout": sizes["dropout"]},
            "hidden_size": sizes["model_dim"], "ff_size": sizes["ff_dim"], "dropout": sizes["dropout"],
            "layer_norm": sizes["norm"], "activation": sizes["activation"],
        }  # fmt: skip

    return {"encoder": stack(sizes["encoder_layers"]), "decoder": stack(sizes["decoder_layers"])}


if __name__ == "__main__":
    main(build)
