"""A model directory as a CTranslate2 model: the fast engine for CPUs. Weights go from file to file, without torch.

What is written, beside CTranslate2's own files (model.bin, config.json, the vocabularies):

    export.json     the SHA-256 of the weights and tokenizers that it was made from, and of each file that was written
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headwise.bundle.directory import WEIGHTS, Bundle, check_files, file_hash, read_json, write_directory, write_json
from headwise.errors import HeadwiseError, ModelError, UsageError
from headwise.text.tokenizer import TokenizerPair

if TYPE_CHECKING:
    from types import ModuleType

Array = NDArray[np.float32]
Weights = dict[str, Array]

PRECISIONS = ("float32", "int8")
MANIFEST = "export.json"
# Raised whenever the same weights would be written differently: an older export is then made anew.
REVISION = 2
# The largest int8 weight. Without VNNI, processors add two products of a weight and an activation of up to 255 in 16
# bits, and what does not fit is cut off: 2 · 255 · 64 does. The bit that is given up costs far less.
LARGEST_INT8 = 64
# CTranslate2 reads a position from a table, which has an end: the longest input and output, in tokens.
POSITIONS = 2048

_ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "gelu-tanh": "GELUTanh", "silu": "SWISH"}
_IMPORTING = threading.Lock()


def export(
    bundle: Bundle, tokenizers: TokenizerPair, directory: Path, precision: str = "int8", positions: int = 0
) -> None:
    """Writes `directory` whole or not at all, replacing an older one. `positions`: the table's length, 0 for ample."""
    if precision not in PRECISIONS:
        raise UsageError(f"unknown precision '{precision}'; there are {', '.join(PRECISIONS)}")
    if bundle.family not in _BUILDERS:
        raise UsageError(f"a model of family '{bundle.family}' cannot be exported to ctranslate2; use the torch engine")
    weights = _read_weights(bundle)
    sizes = bundle.architecture
    if sizes["positions"] != "learned":  # learned ones end where they end
        sizes = {**sizes, "max_length": positions or max(POSITIONS, int(sizes["max_length"]))}

    def fill(new: Path) -> None:
        with _specs() as specs:
            spec = _BUILDERS[bundle.family](specs, sizes, weights, tokenizers)
            spec.validate()
            spec.optimize(quantization="float32")
            if precision == "int8":
                specs.model_spec.visit_spec(spec, partial(_to_int8, specs.model_spec.NumpyVariable))
            spec.save(str(new))
        files = {path.name: file_hash(path) for path in sorted(new.iterdir())}
        write_json(
            new / MANIFEST,
            {**_origin(bundle), "precision": precision, "positions": int(sizes["max_length"]), "files": files},
        )

    try:
        write_directory(directory, fill)
    except KeyError as error:
        raise ModelError(f"{bundle.path / WEIGHTS} does not fit its architecture: {error} is missing") from error


def is_current(bundle: Bundle, directory: Path, precision: str) -> bool:
    """Is there a whole export of exactly this model? A stale, damaged or half one is not."""
    try:
        manifest = read_json(directory / MANIFEST)
        wanted = {**_origin(bundle), "precision": precision}
        if any(manifest.get(key) != value for key, value in wanted.items()):
            return False
        check_files(directory, dict(manifest["files"]))
    except (HeadwiseError, KeyError, TypeError, ValueError):
        return False
    return True


def _origin(bundle: Bundle) -> dict[str, Any]:
    made_from = {name: digest for name, digest in bundle.files.items() if name == WEIGHTS or "tokenizer" in name}
    return {"revision": REVISION, "made_from": made_from}


def _read_weights(bundle: Bundle) -> Weights:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        loaded = load_file(bundle.path / WEIGHTS)
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{bundle.path / WEIGHTS} cannot be read: {error}") from error
    return {name: np.ascontiguousarray(tensor, dtype=np.float32) for name, tensor in loaded.items()}


@contextmanager
def _specs() -> Iterator[ModuleType]:
    """`ctranslate2.specs`, which imports torch if it can, for tensors that are not used here: two seconds and 200 MB.

    Where torch is not loaded yet it is hidden for the moment of that import, and the modules that missed it are dropped
    afterwards, so that another user of CTranslate2's converters in this process gets them with torch.
    """
    import ctranslate2

    with _IMPORTING:
        if "torch" in sys.modules or "ctranslate2.specs" in sys.modules:
            from ctranslate2 import specs

            yield specs
            return
        sys.modules["torch"] = None  # type: ignore[assignment]
        try:
            from ctranslate2 import specs
        finally:
            del sys.modules["torch"]
        try:
            yield specs
        finally:
            for name in [name for name in sys.modules if name.startswith("ctranslate2.specs")]:
                del sys.modules[name]
            vars(ctranslate2).pop("specs", None)


def _to_int8(variable: type, layer: Any, path: str, value: Any) -> None:
    """Called for each part of a spec: weights that have room for a scale become int8, with one scale a row."""
    name = path.split("/")[-1]
    if not hasattr(layer, f"{name}_scale") or isinstance(value, str):  # a string is the name of an equal one
        return
    matrix: Array = value.numpy()
    largest = np.abs(matrix).max(axis=1, keepdims=True)
    scale = LARGEST_INT8 / np.maximum(largest, 1e-30)
    setattr(layer, name, variable(np.rint(matrix * scale).astype(np.int8)))
    setattr(layer, f"{name}_scale", variable(scale[:, 0].astype(np.float32)))


# ---- the families


def _transformer(specs: Any, sizes: dict[str, Any], weights: Weights, tokenizers: TokenizerPair) -> Any:
    pre = sizes["norm"] == "pre"
    final = pre if sizes.get("final_norm") is None else bool(sizes["final_norm"])
    shape = {"activation": _activation(specs, sizes), "no_final_norm": not final}
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
    source = weights["source_embedding.weight"]
    target = source if sizes["tie"] == "all" else weights["target_embedding.weight"]
    encoder.embeddings[0].weight = source
    decoder.embeddings.weight = target
    decoder.projection.weight = weights["output.weight"] if sizes["tie"] == "none" else target
    encoder.position_encodings.encodings = _positions(sizes, weights, "source_positions")
    decoder.position_encodings.encodings = _positions(sizes, weights, "target_positions")
    _fill_stack(encoder, weights, "encoder", final)
    _fill_stack(decoder, weights, "decoder", final)
    spec = specs.TransformerSpec(encoder, decoder)
    spec.config.layer_norm_epsilon = 1e-5
    spec.register_source_vocabulary(tokenizers.source.vocabulary)
    spec.register_target_vocabulary(tokenizers.target.vocabulary)
    return spec


def _language_model(specs: Any, sizes: dict[str, Any], weights: Weights, tokenizers: TokenizerPair) -> Any:
    if sizes.get("cutoffs"):
        raise UsageError(
            "ctranslate2 has no adaptive softmax: use the torch engine, or train without model.cutoffs to export"
        )
    pre = sizes["norm"] == "pre"
    head_dim = sizes["model_dim"] // sizes["num_heads"]
    rotary = {"rotary_dim": head_dim, "rotary_interleave": False} if sizes["positions"] == "rotary" else {}
    decoder = specs.TransformerDecoderSpec(
        sizes["layers"],
        sizes["num_heads"],
        activation=_activation(specs, sizes),
        no_final_norm=not pre,
        with_encoder_attention=False,
        **rotary,
    )
    decoder.pre_norm = pre
    decoder.scale_embeddings = bool(sizes.get("scale_embeddings", True))
    decoder.embeddings.weight = weights["embedding.weight"]
    decoder.projection.weight = weights["output.weight" if sizes["tie"] == "none" else "embedding.weight"]
    if not rotary:
        decoder.position_encodings.encodings = _positions(sizes, weights, "positions")
    _fill_stack(decoder, weights, "stack", pre)
    spec = specs.TransformerDecoderModelSpec(decoder)
    spec.config.layer_norm_epsilon = 1e-5
    spec.register_vocabulary(tokenizers.target.vocabulary)
    return spec


_BUILDERS = {"transformer": _transformer, "lm": _language_model}


# ---- their parts


def _fill_stack(stack: Any, weights: Weights, name: str, final_norm: bool) -> None:
    for index, layer in enumerate(stack.layer):
        place = f"{name}.layers.{index}"
        attention, feed_forward = layer.self_attention, layer.ffn
        _fill_linear(attention.linear[0], weights, f"{place}.self_attention.query_key_value")
        _fill_linear(attention.linear[1], weights, f"{place}.self_attention.output")
        _fill_norm(attention.layer_norm, weights, f"{place}.self_residual.norm")
        if f"{place}.cross_residual.norm.weight" in weights:
            _fill_cross(layer.attention, weights, place)
        _fill_linear(feed_forward.linear_0, weights, f"{place}.feed_forward.inner")
        _fill_linear(feed_forward.linear_1, weights, f"{place}.feed_forward.outer")
        _fill_norm(feed_forward.layer_norm, weights, f"{place}.feed_residual.norm")
    if final_norm:
        _fill_norm(stack.layer_norm, weights, f"{name}.norm")


def _fill_cross(attention: Any, weights: Weights, place: str) -> None:
    """Cross-attention's query has its own matrix, since it reads another input; key and value share one."""
    fused = f"{place}.cross_attention.query_key_value"
    matrix, bias = weights[f"{fused}.weight"], weights[f"{fused}.bias"]
    model_dim = matrix.shape[1]
    attention.linear[0].weight, attention.linear[0].bias = matrix[:model_dim], bias[:model_dim]
    attention.linear[1].weight, attention.linear[1].bias = matrix[model_dim:], bias[model_dim:]
    _fill_linear(attention.linear[2], weights, f"{place}.cross_attention.output")
    _fill_norm(attention.layer_norm, weights, f"{place}.cross_residual.norm")


def _fill_linear(linear: Any, weights: Weights, name: str) -> None:
    linear.weight, linear.bias = weights[f"{name}.weight"], weights[f"{name}.bias"]


def _fill_norm(norm: Any, weights: Weights, name: str) -> None:
    norm.gamma, norm.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]


def _activation(specs: Any, sizes: dict[str, Any]) -> Any:
    try:
        return getattr(specs.Activation, _ACTIVATIONS[sizes["activation"]])
    except KeyError:
        raise UsageError(f"ctranslate2 has no activation '{sizes['activation']}'; use the torch engine") from None


def _positions(sizes: dict[str, Any], weights: Weights, name: str) -> Array:
    """The table to add. Without one CTranslate2 would add sines in its own order, so 'none' is a table of zeros."""
    if sizes["positions"] == "learned":
        return weights[f"{name}.weight"]
    if sizes["positions"] == "sinusoidal":
        return sinusoids(sizes["max_length"], sizes["model_dim"])
    return np.zeros((sizes["max_length"], sizes["model_dim"]), dtype=np.float32)


def sinusoids(length: int, model_dim: int, base: float = 10000.0) -> Array:
    """`headwise.nn.sinusoidal_positions` in numpy: sin on even columns, cos on odd ones."""
    position = np.arange(length, dtype=np.float64)[:, None]
    angle = position / base ** (np.arange(0, model_dim, 2, dtype=np.float64) / model_dim)  # (length, D/2)
    return np.stack((np.sin(angle), np.cos(angle)), axis=-1).reshape(length, model_dim).astype(np.float32)
