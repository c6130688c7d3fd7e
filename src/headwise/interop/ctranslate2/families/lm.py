"""A language model as CTranslate2's decoder without an encoder."""

from __future__ import annotations

from typing import Any

from headwise.interop.ctranslate2.parts import Weights, activation, fill_output, fill_stack, positions, table
from headwise.text.tokenizer import TokenizerPair


def lacks(sizes: dict[str, Any]) -> str | None:
    """What of these settings CTranslate2 does not have."""
    return "an adaptive softmax (model.cutoffs)" if sizes.get("cutoffs") else None


def build(specs: Any, sizes: dict[str, Any], weights: Weights, tokenizers: TokenizerPair) -> Any:
    pre = sizes["norm"] == "pre"
    head_dim = sizes["model_dim"] // sizes["num_heads"]
    rotary = {"rotary_dim": head_dim, "rotary_interleave": False} if sizes["positions"] == "rotary" else {}
    decoder = specs.TransformerDecoderSpec(
        sizes["layers"],
        sizes["num_heads"],
        activation=activation(specs, sizes),
        no_final_norm=not pre,
        with_encoder_attention=False,
        **rotary,
    )
    decoder.pre_norm = pre
    decoder.scale_embeddings = bool(sizes.get("scale_embeddings", True))
    decoder.embeddings.weight = embedding = table(sizes, weights, "embedding")
    if sizes["tie"] == "none":
        fill_output(decoder.projection, sizes, weights, "output")
    else:
        fill_output(decoder.projection, sizes, weights, "embedding", embedding)
    if not rotary:
        decoder.position_encodings.encodings = positions(sizes, weights, "positions")
    fill_stack(decoder, weights, "stack", pre)
    spec = specs.TransformerDecoderModelSpec(decoder)
    spec.config.layer_norm_epsilon = sizes.get("norm_epsilon", 1e-5)
    spec.register_vocabulary(tokenizers.target.vocabulary)
    return spec


def example(sizes: dict[str, Any], tokenizers: TokenizerPair) -> str:
    """Python that goes on with a text, in the directory of the export."""
    start = "" if tokenizers.target.reads_documents else '"</s>", '
    return f"""
import ctranslate2
from tokenizers import Tokenizer

tokenizer = Tokenizer.from_file("tokenizer.json")
generator = ctranslate2.Generator(".")
tokens = [{start}*tokenizer.encode("A text", add_special_tokens=False).tokens]
(result,) = generator.generate_batch([tokens], max_length=30, sampling_topk=10, include_prompt_in_result=False)
print(tokenizer.decode(result.sequences_ids[0]))
"""
