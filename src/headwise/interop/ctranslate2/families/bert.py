"""BERT as CTranslate2's encoder. What comes after the encoder, pooling and labels, is computed outside of it."""

from __future__ import annotations

from typing import Any

from headwise.interop.ctranslate2.parts import Weights, activation, fill_norm, fill_stack, table
from headwise.text.tokenizer import TokenizerPair


def build(specs: Any, sizes: dict[str, Any], weights: Weights, tokenizers: TokenizerPair) -> Any:
    pre = sizes["norm"] == "pre"
    encoder = specs.TransformerEncoderSpec(
        sizes["layers"],
        sizes["num_heads"],
        pre_norm=pre,
        no_final_norm=not pre,
        activation=activation(specs, sizes),
        num_source_embeddings=2,
        embeddings_merge=specs.EmbeddingsMerge.ADD,
        layernorm_embedding=True,
    )
    encoder.scale_embeddings = False
    encoder.embeddings[0].weight = table(sizes, weights, "embedding")
    encoder.embeddings[1].weight = weights["segments.weight"]
    encoder.position_encodings.encodings = weights["positions.weight"]
    fill_norm(encoder.layernorm_embedding, weights, "norm")
    fill_stack(encoder, weights, "encoder", pre)
    spec = specs.TransformerEncoderModelSpec(encoder)
    spec.config.layer_norm_epsilon = float(sizes["norm_epsilon"])
    spec.register_vocabulary(tokenizers.source.vocabulary)
    return spec
