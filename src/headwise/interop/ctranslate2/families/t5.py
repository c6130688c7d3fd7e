"""T5 as CTranslate2's TransformerSpec with relative biases and RMSNorm.

CTranslate2's own converter scales the output whenever `transformers` says that it is tied, which version 5 of that
library says of every T5. Here the scale follows from our setting: version 1.0 has it, 1.1 does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headwise.interop.ctranslate2.parts import Weights, activation, fill_output, fill_stack, table
from headwise.text.tokenizer import TokenizerPair

EPSILON = 1e-6  # of headwise.nn.RMSNorm


def build(specs: Any, sizes: dict[str, Any], weights: Weights, tokenizers: TokenizerPair) -> Any:
    shape = {
        "activation": activation(specs, sizes), "pre_norm": True, "ffn_glu": sizes["gated"],
        "relative_attention_bias": True, "rms_norm": True,
    }  # fmt: skip
    encoder = specs.TransformerEncoderSpec(sizes["encoder_layers"], sizes["num_heads"], **shape)
    # Alignments: the mean over the heads of the last layer but one, whose attention follows words best (Garg 2019).
    decoder = specs.TransformerDecoderSpec(
        sizes["decoder_layers"],
        sizes["num_heads"],
        alignment_layer=max(0, sizes["decoder_layers"] - 2),
        alignment_heads=sizes["num_heads"],
        **shape,
    )
    embedding = table(sizes, weights, "embedding")
    encoder.embeddings[0].weight = decoder.embeddings.weight = embedding
    encoder.scale_embeddings = decoder.scale_embeddings = False
    if sizes["tie"] == "all":
        fill_output(decoder.projection, sizes, weights, "embedding", embedding)
        decoder.scale_outputs = np.dtype("float32").type(sizes["model_dim"] ** -0.5)
    else:
        fill_output(decoder.projection, sizes, weights, "output")
    for name, stack in (("encoder", encoder), ("decoder", decoder)):
        fill_stack(stack, weights, name, final_norm=True)
        for layer in stack.layer:
            attention = layer.self_attention
            attention.relative_attention_bias = weights[f"{name}_bias.weight"]
            attention.relative_attention_max_distance = np.dtype("int32").type(sizes["max_distance"])
            for each in (attention, *([layer.attention] if name == "decoder" else [])):
                each.queries_scale = np.dtype("float32").type(1.0)
    spec = specs.TransformerSpec(encoder, decoder)
    spec.config.layer_norm_epsilon = EPSILON
    spec.register_source_vocabulary(tokenizers.source.vocabulary)
    spec.register_target_vocabulary(tokenizers.target.vocabulary)
    return spec
