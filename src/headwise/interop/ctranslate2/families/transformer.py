"""The encoder-decoder of the paper as CTranslate2's TransformerSpec."""

from __future__ import annotations

from typing import Any

from headwise.interop.ctranslate2.parts import Weights, activation, fill_output, fill_stack, positions, table
from headwise.text.tokenizer import TokenizerPair


def build(specs: Any, sizes: dict[str, Any], weights: Weights, tokenizers: TokenizerPair) -> Any:
    pre = sizes["norm"] == "pre"
    final = pre if sizes.get("final_norm") is None else bool(sizes["final_norm"])
    shape = {"activation": activation(specs, sizes), "no_final_norm": not final}
    encoder = specs.TransformerEncoderSpec(sizes["encoder_layers"], sizes["num_heads"], **shape)
    # Alignments: the mean over the heads of the last layer but one, whose attention follows words best (Garg 2019).
    decoder = specs.TransformerDecoderSpec(
        sizes["decoder_layers"],
        sizes["num_heads"],
        alignment_layer=max(0, sizes["decoder_layers"] - 2),
        alignment_heads=sizes["num_heads"],
        **shape,
    )
    encoder.pre_norm = decoder.pre_norm = pre
    source = table(sizes, weights, "source_embedding")
    target = source if sizes["tie"] == "all" else table(sizes, weights, "target_embedding")
    encoder.embeddings[0].weight = source
    decoder.embeddings.weight = target
    names = {"all": "source_embedding", "target": "target_embedding", "none": "output"}
    fill_output(decoder.projection, sizes, weights, names[sizes["tie"]], None if sizes["tie"] == "none" else target)
    encoder.position_encodings.encodings = positions(sizes, weights, "source_positions")
    decoder.position_encodings.encodings = positions(sizes, weights, "target_positions")
    fill_stack(encoder, weights, "encoder", final)
    fill_stack(decoder, weights, "decoder", final)
    spec = specs.TransformerSpec(encoder, decoder)
    spec.config.layer_norm_epsilon = sizes.get("norm_epsilon", 1e-5)
    spec.register_source_vocabulary(tokenizers.source.vocabulary)
    spec.register_target_vocabulary(tokenizers.target.vocabulary)
    return spec


def example(sizes: dict[str, Any], tokenizers: TokenizerPair) -> str:
    """Python that translates with the export, in its directory."""
    end = ', "</s>"' if sizes.get("source_end", True) else ""
    source, target = ("tokenizer",) * 2 if tokenizers.shared else ("source.tokenizer", "target.tokenizer")
    return f"""
import ctranslate2
from tokenizers import Tokenizer

source, target = Tokenizer.from_file("{source}.json"), Tokenizer.from_file("{target}.json")
translator = ctranslate2.Translator(".")
tokens = [*source.encode("A text.", add_special_tokens=False).tokens{end}]
(result,) = translator.translate_batch([tokens], beam_size=5)
print(target.decode([target.token_to_id(token) for token in result.hypotheses[0]]))
"""
