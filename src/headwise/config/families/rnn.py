"""Recurrent encoder and decoder with attention, which the Transformer replaced (Bahdanau et al., Luong et al. 2015)."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from headwise.config.family import Family, Fraction, Positive, Settings


class RecurrentSettings(Settings):
    """The defaults are Luong's attention with input feeding, at widths that a CPU trains."""

    cell: Literal["lstm", "gru"] = Field("lstm", description="kind of recurrent layer")
    attention: Literal["none", "additive", "dot", "general"] = Field(
        "general",
        description="score of a source position: v·tanh(W s + U h) (additive), s·h (dot) or s·W h (general); none: the "
        "decoder knows of the source only what the encoder's last states say",
    )
    input_feeding: bool = Field(
        True, description="give each step the attentional vector of the step before; not with attention = 'none'"
    )
    model_dim: Positive = Field(512, description="width of embeddings and of the attentional vectors")
    hidden_dim: Positive = Field(512, description="width of the states; both directions of the encoder share it")
    encoder_layers: Positive = Field(2, description="layers of the encoder")
    decoder_layers: Positive = Field(2, description="layers of the decoder")
    bidirectional: bool = Field(True, description="read the source in both directions")
    dropout: Fraction = Field(0.2, description="on the input of every layer, and on the attentional vectors")
    tie: Literal["all", "target", "none"] = Field("all", description="which embeddings share the output matrix")

    @property
    def feeds_input(self) -> bool:
        """Whether a step reads the attentional vector of the step before."""
        return self.input_feeding and self.attention != "none"


FAMILY = Family(
    name="rnn",
    about="recurrent encoder and decoder with attention: translates",
    tasks=("translate",),
    network="headwise.models.recurrent:RecurrentSeq2Seq",
    settings=RecurrentSettings,
    sizes=("source_vocab", "target_vocab"),
    presets={
        # As many weights as the Transformer's `tiny` with a vocabulary of 4,000.
        "rnn-tiny": {"model_dim": 128, "hidden_dim": 288, "encoder_layers": 1, "decoder_layers": 1},
        "rnn-base": {},
    },
    default_preset="rnn-base",
    by_size=((200_000, "rnn-tiny"), (math.inf, "rnn-base")),
)
